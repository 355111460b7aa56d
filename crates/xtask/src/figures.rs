//! Tables of figures whose every figure comes from a committed run: `bench/figures.txt` describes
//! them, and the files of `bench/results` have the runs.

/// A table: the document and the name of its place there, and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Path of the document.
    pub document: String,
    /// Name in the comment that begins its place.
    pub name: String,
    /// Its text, with a line break at the end.
    pub text: String,
}

/// The tables of this repository.
///
/// # Errors
/// A figure that the committed results do not have.
pub fn committed() -> Result<Vec<Table>, String> {
    let bench = crate::tree::root().join("bench");
    let read = |path: &str| {
        let text = std::fs::read_to_string(bench.join(path));
        text.map_err(|error| format!("bench/{path}: {error}"))
    };
    tables(&read("figures.txt")?, |file| {
        read(&format!("results/{file}"))
    })
}

/// Reads the description of the tables and fills in the figures. `run` returns the text of a file
/// of results.
///
/// # Errors
/// A figure that its file does not have.
pub fn tables(
    description: &str,
    run: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<Table>, String> {
    let mut short: Vec<(&str, &str)> = Vec::new();
    let mut found: Vec<Table> = Vec::new();
    for line in description.lines() {
        if let Some(name) = line.strip_prefix("@") {
            short.extend(name.split_once(' '));
        } else if let Some(place) = line.strip_prefix("== ") {
            let (document, name) = place.split_once(' ').ok_or(line)?;
            found.push(Table {
                document: document.to_owned(),
                name: name.to_owned(),
                text: String::new(),
            });
        } else if let (Some(table), true) = (found.last_mut(), line.starts_with('|')) {
            table.text += &filled(line, &short, &run)?;
            table.text.push('\n');
        }
    }
    Ok(found)
}

/// The document with the table at its place.
///
/// # Errors
/// A document without that place.
pub fn with_table(document: &str, table: &Table) -> Result<String, String> {
    let begin = format!("<!-- figures: {} -->\n", table.name);
    let missing = || format!("{} has no place for {}", table.document, table.name);
    let (before, rest) = document.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest
        .split_once("<!-- figures: end -->")
        .ok_or_else(missing)?;
    Ok(format!(
        "{before}{begin}\n{}\n<!-- figures: end -->{after}",
        table.text
    ))
}

/// A line of a table with the figures in place of the braces.
fn filled(
    line: &str,
    short: &[(&str, &str)],
    run: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let (figure, after) = after
            .split_once('}')
            .ok_or_else(|| format!("{line}: a brace does not close"))?;
        let parts: Vec<&str> = figure.split("; ").collect();
        let file = match parts[0].strip_prefix('@') {
            Some(name) => short
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(name, |(_, file)| file),
            None => parts[0],
        };
        let found = value(&run(file)?, &parts[1..]);
        text += before;
        text += &found.ok_or_else(|| format!("{file} has no figure {{{figure}}}"))?;
        rest = after;
    }
    Ok(text + rest)
}

fn value(run: &str, parts: &[&str]) -> Option<String> {
    match parts {
        [line, what] if what.starts_with("says ") => {
            let wanted = what.strip_prefix("says ")?;
            lines(run, line)
                .any(|printed| printed.contains(wanted))
                .then(|| wanted.to_owned())
        }
        [line, column] => Some(shown(median(run, line, column)?, column)),
        [line, column, other] => {
            let ratio = median(run, line, column)? / median(run, other, column)?;
            Some(format!("{ratio:.2}"))
        }
        _ => None,
    }
}

/// The lines that begin with this text, with one blank between words.
fn lines(run: &str, begin: &str) -> impl Iterator<Item = String> {
    let one_blank = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    run.lines()
        .map(one_blank)
        .filter(move |line| line.starts_with(begin))
}

/// The median of a column of the single runs whose lines begin with these words.
fn median(run: &str, begin: &str, column: &str) -> Option<f64> {
    let unit: &[&str] = match column {
        "wall" => &["s", "wall"],
        "CPU" => &["s", "CPU"],
        "private" => &["MiB", "private"],
        _ => return None,
    };
    let number = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.windows(2).position(|two| two == unit)?;
        words[at.checked_sub(1)?].parse::<f64>().ok()
    };
    let mut all: Vec<f64> = lines(run, begin).filter_map(number).collect();
    all.sort_by(f64::total_cmp);
    let middle = all.get(all.len() / 2)?;
    match all.len() % 2 {
        0 => Some((all[all.len() / 2 - 1] + middle) / 2.0),
        _ => Some(*middle),
    }
}

fn shown(number: f64, column: &str) -> String {
    match column {
        "private" if number >= 1000.0 => {
            format!("{},{:03.0} MiB", (number / 1000.0).floor(), number % 1000.0)
        }
        "private" => format!("{number:.0} MiB"),
        _ if number < 0.1 => format!("{:.0} ms", number * 1000.0),
        _ if number < 10.0 => format!("{number:.2} s"),
        _ => format!("{number:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, tables, with_table};

    const RUN: &str = "a x time  3.0 s wall 1 s CPU\na x time 1.0 s wall\n a x  time 2.0 s wall\n\
         b y memory 1 s wall 1234.4 MiB private\nc 17 | quoted | 1.05\n";

    fn only(line: &str) -> Result<String, String> {
        let read = |name: &str| match name {
            "run.txt" => Ok(RUN.to_owned()),
            _ => Err(format!("no {name}")),
        };
        let found = tables(&format!("@r run.txt\n== D n\n{line}\n"), read)?;
        Ok(found[0].text.clone())
    }

    #[test]
    fn figures_are_medians_ratios_and_quotations() {
        let text = only("| {@r; a x time; wall} {run.txt; b y; private} | {@r; c 17; says 1.05} |");
        assert_eq!(text.as_deref(), Ok("| 2.00 s 1,234 MiB | 1.05 |\n"));
        let text = only("| {@r; a x time; wall; b y} |");
        assert_eq!(text.as_deref(), Ok("| 2.00 |\n"));
    }

    #[test]
    fn a_figure_without_a_run_is_an_error() {
        for line in [
            "| {@r; c 17; says 1.06} |",
            "| {@r; d; wall} |",
            "| {other; d; wall} |",
            "| {@r; a x time; wall |",
        ] {
            assert!(only(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_table_replaces_what_is_at_its_place() {
        let table = Table {
            document: "D".to_owned(),
            name: "n".to_owned(),
            text: "| new |\n".to_owned(),
        };
        let document = "a\n<!-- figures: n -->\nold\n<!-- figures: end -->\nb\n";
        let want = "a\n<!-- figures: n -->\n\n| new |\n\n<!-- figures: end -->\nb\n";
        assert_eq!(with_table(document, &table).as_deref(), Ok(want));
        assert_eq!(with_table(want, &table).as_deref(), Ok(want));
        assert!(with_table("nothing", &table).is_err());
    }
}
