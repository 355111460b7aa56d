//! Tables to download: JSON, CSV, or one page that can be sorted without a server.

use crate::reply::Content;
use live_analysis::table::Table;
use live_session::persist::table_forms::page;
use report::live;
use requests::Fault;
use requests::Params;
use std::path::Path;

/// A table in the requested format: `form` is json, csv or html.
pub(in crate::live) fn in_form<R>(
    params: &Params,
    name: &str,
    table: &Table<R>,
) -> Result<Content, Fault> {
    let (media, form, text) = match params.get("form").unwrap_or("json") {
        "json" => return Ok(Content::json(table)),
        "csv" => (
            "text/csv; charset=utf-8",
            "csv",
            live::csv(table.columns, &table.rows),
        ),
        "html" => (
            "text/html; charset=utf-8",
            "html",
            page(name, table.columns, &table.rows),
        ),
        other => {
            return Err(Fault::bad(format!(
                "form={other}: expected json, csv or html"
            )));
        }
    };
    let file = format!("{name}.{form}");
    Ok(Content::new(media, text.into_bytes()).kept_as(Path::new(&file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use live_analysis::allocations::Row;
    use live_analysis::columns::{Column, Kind, Tabular};
    use live_analysis::table::Page;
    use live_session::persist::table_forms::push_answer;

    /// The columns of allocations and one more: this is all that a new column takes.
    fn with_one_more() -> &'static [Column<Row>] {
        let survivors = Column::new(
            Kind::Percent,
            "surviving",
            "Surviving",
            "Share of the allocations of the range that are live at its end.",
            |row: &Row| (100.0 * row.live as f64 / row.allocations.max(1) as f64).into(),
        );
        // Columns of a test have static lifetime, like those of the product.
        let copy = |column: &Column<Row>| Column { ..*column };
        let columns = Row::COLUMNS.iter().map(copy).chain([survivors]);
        Box::leak(columns.collect::<Vec<_>>().into_boxed_slice())
    }

    #[test]
    fn a_new_column_is_one_entry_and_every_form_has_it() {
        let row = |name: &str, allocations, live| Row {
            name: name.to_owned(),
            allocations,
            live,
            ..Row::default()
        };
        let rows = vec![row("a.Young", 100, 25), row("a.Old", 10, 10)];
        let page_of = Page {
            sort: "surviving".to_owned(),
            limit: 10,
            ..Page::default()
        };
        let columns = with_one_more();
        let table = Table::with_columns(columns, "test", rows, &page_of).expect("a column");
        assert_eq!(table.rows[0].name, "a.Old");
        let json = serde_json::to_value(&table).expect("JSON");
        assert_eq!(json["rows"][1]["surviving"], 25.0);
        let described = json["columns"].as_array().expect("columns");
        assert_eq!(described.last().expect("one")["title"], "Surviving");
        let csv = live::csv(table.columns, &table.rows);
        assert!(csv.starts_with("name,allocations,") && csv.contains("stack,surviving\r\n"));
        assert!(csv.contains("a.Young,100,"), "{csv}");
        let file = page("allocations", table.columns, &table.rows);
        assert!(file.contains("<th>surviving</th>") && file.contains("<td>25.00</td>"));
        let mut plain = String::new();
        push_answer(&mut plain, &table);
        assert!(plain.contains("<th>Surviving</th>"), "{plain}");
        let terminal = live::cells(table.columns, &table.rows[1]);
        assert_eq!(terminal.last().map(String::as_str), Some("25.0 %"));
        let reference = live::reference(table.columns);
        assert!(reference.contains("| `surviving` | Surviving | percent | Share of"));
    }
}
