//! Names that resemble one that does not exist, for messages.

/// The most similar of some names, if one is similar.
pub fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    let most = length.max(3) / 3 + 1;
    // A difference of lengths is one of as many characters: the others need not be compared.
    let similar = known
        .iter()
        .filter(|known| known.chars().count().abs_diff(length) <= most);
    let least = similar.map(|known| (distance(&name, known), *known));
    let (distance, found) = least.min_by_key(|(distance, _)| *distance)?;
    (distance <= most).then_some(found)
}

/// The same for names with a package: one that has this last part, or else the most similar one.
pub(crate) fn nearest_qualified<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let is_end = |known: &&&str| {
        let before = known.strip_suffix(name);
        before.is_some_and(|before| before.ends_with(['.', '$']))
    };
    known
        .iter()
        .find(is_end)
        .copied()
        .or_else(|| nearest(name, known))
}

/// The number of characters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, one) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], n + 1);
        for (m, other) in b.iter().enumerate() {
            let replaced = before + usize::from(one != *other);
            before = row[m + 1];
            row[m + 1] = replaced.min(row[m] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_found() {
        let known = ["count", "fruit", "shop.Order", "shop.Shop$Order"];
        assert_eq!(nearest("cuont", &known), Some("count"));
        assert_eq!(nearest("something else", &known), None);
        for (name, found) in [
            ("Order", Some("shop.Order")),
            ("shop.Oder", Some("shop.Order")),
            ("Shop$Order", Some("shop.Shop$Order")),
            ("java.util.HashMap", None),
        ] {
            assert_eq!(nearest_qualified(name, &known), found, "{name}");
        }
    }
}
