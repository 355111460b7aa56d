//! Ranks rows as the original prints them: sorted by cost, and cut where the share is below the cutoff.

/// One printed row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Rank from 1.
    pub rank: u32,
    /// Row of the table.
    pub row: usize,
    /// Share of the total, 0 to 1.
    pub share: f64,
    /// Sum of the shares of this row and all rows before it.
    pub accumulated: f64,
}

/// How a table is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// The list ends at the first row whose share is below this (a ratio, not a percentage).
    pub share: f64,
    /// Rows that were never counted are left out.
    pub hits_only: bool,
}

/// Sorts rows by descending cost, equal ones in table order, and cuts the list.
///
/// `total` is the cost of all rows, printed or not; `hits` returns how often a row was counted.
pub fn rank(
    rows: usize,
    total: i64,
    cut: Cut,
    cost: impl Fn(usize) -> i64,
    hits: impl Fn(usize) -> u64,
) -> Vec<Ranked> {
    let mut order: Vec<usize> = (0..rows)
        .filter(|row| !cut.hits_only || hits(*row) > 0)
        .collect();
    order.sort_by_key(|row| std::cmp::Reverse(cost(*row)));
    let mut accumulated = 0.0;
    let mut ranked = Vec::new();
    for row in order {
        let share = if total == 0 {
            0.0
        } else {
            cost(row) as f64 / total as f64
        };
        if share < cut.share {
            break;
        }
        accumulated += share;
        ranked.push(Ranked {
            rank: ranked.len() as u32 + 1,
            row,
            share,
            accumulated,
        });
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(costs: &[i64], cut: f64) -> Vec<usize> {
        let total = costs.iter().sum();
        let cut = Cut {
            share: cut,
            hits_only: true,
        };
        let rows = rank(
            costs.len(),
            total,
            cut,
            |row| costs[row],
            |row| costs[row] as u64,
        );
        rows.iter().map(|one| one.row).collect()
    }

    #[test]
    fn rows_fall_and_ties_keep_their_order() {
        assert_eq!(ranked(&[1, 5, 5, 9], 0.0), [3, 1, 2, 0]);
        assert_eq!(ranked(&[1, 0, 2], 0.0), [2, 0]);
        assert_eq!(ranked(&[1, 99], 0.05), [1]);
        assert_eq!(ranked(&[], 0.0), Vec::<usize>::new());
    }

    #[test]
    fn a_total_of_zero_keeps_rows_when_the_cutoff_is_zero() {
        let all = Cut {
            share: 0.0,
            hits_only: true,
        };
        assert_eq!(rank(2, 0, all, |_| 0, |_| 3).len(), 2);
        let some = Cut {
            share: 0.0001,
            hits_only: true,
        };
        assert_eq!(rank(2, 0, some, |_| 0, |_| 3).len(), 0);
    }
}
