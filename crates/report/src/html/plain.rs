//! A page of chapters without JavaScript, in the look of the heap report.

use std::fmt::Write;

use super::page::STYLE;
use super::render::render;
use crate::doc::Doc;
use crate::escape::html as escape;

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its anchor; letters, digits and underscores.
    pub id: String,
    /// Its title.
    pub title: String,
    /// A figure that Tenure has generated, already as markup.
    pub figure: String,
    /// Its words and tables.
    pub doc: Doc,
}

/// One page: a title, its kind, the lead, then the sections. It loads nothing and runs no script.
pub fn plain_page(name: &str, what: &str, lead: &Doc, sections: &[Section]) -> String {
    let (name, what) = (escape(name), escape(what));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{name} - {what}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{name}</h1>\n<p>{what}</p>\n{}</header>\n<nav aria-label=\"Chapters\">",
        render(lead, 2)
    );
    for section in sections {
        let _ = write!(
            out,
            "<a href=\"#{}\">{}</a>",
            escape(&section.id),
            escape(&section.title)
        );
    }
    out.push_str("</nav>\n<main>\n");
    for section in sections {
        let _ = write!(
            out,
            "<section id=\"{}\"><h2>{}</h2>\n{}{}</section>\n",
            escape(&section.id),
            escape(&section.title),
            section.figure,
            render(&section.doc, 3)
        );
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}
