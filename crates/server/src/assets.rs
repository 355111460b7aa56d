//! The page's own files, compiled in: ES modules and style sheets from `web/`, without a build step. The browser runs
//! nothing else.

use crate::reply::{Refused, typed};
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use requests::Fault;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! files {
    ($($name:literal => $media:expr,)*) => {
        /// Name, media type, content.
        const FILES: &[(&str, &str, &[u8])] = &[
            $(($name, $media, include_bytes!(concat!("../web/", $name))),)*
        ];
    };
}

files! {
    "page.css" => STYLE,
    "plain.css" => STYLE,
    "icon.svg" => "image/svg+xml",
    "app.js" => SCRIPT,
    "shell.js" => SCRIPT,
    "dom.js" => SCRIPT,
    "api.js" => SCRIPT,
    "format.js" => SCRIPT,
    "table.js" => SCRIPT,
    "columns.js" => SCRIPT,
    "treemap.js" => SCRIPT,
    "objects.js" => SCRIPT,
    "views_heap.js" => SCRIPT,
    "views_object.js" => SCRIPT,
    "views_more.js" => SCRIPT,
    "live.css" => STYLE,
    "live.js" => SCRIPT,
    "live_chart.js" => SCRIPT,
    "live_timeline.js" => SCRIPT,
    "live_objects.js" => SCRIPT,
    "live_tables.js" => SCRIPT,
    "live_cpu.js" => SCRIPT,
    "live_saved.js" => SCRIPT,
    "views_android.js" => SCRIPT,
    "views_compare.js" => SCRIPT,
    "views_waste.js" => SCRIPT,
    "views_query.js" => SCRIPT,
}

/// A file of the page.
pub fn find(name: &str) -> Option<(&'static str, &'static [u8])> {
    FILES
        .iter()
        .find(|(n, ..)| *n == name)
        .map(|(_, media, bytes)| (*media, *bytes))
}

/// `GET assets/NAME`.
pub async fn serve(Path(name): Path<String>) -> Response {
    match find(&name) {
        Some((media, bytes)) => typed(media, bytes.to_vec()),
        None => Refused(Fault::not_found("no such file")).into_response(),
    }
}

/// The page that loads the module `script`, which creates all of its content. `plain` is the address of the version
/// without JavaScript.
pub fn page(title: &str, script: &str, plain: &str) -> Response {
    let title = report::escape::html(title);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} - Tenure</title>\n\
         <link rel=\"icon\" href=\"assets/icon.svg\">\n\
         <link rel=\"stylesheet\" href=\"assets/page.css\">\n\
         <script type=\"module\" src=\"assets/{script}\"></script>\n</head>\n<body>\n\
         <noscript><p>This page needs script. <a href=\"{plain}\">The same as plain pages</a>.</p>\
         </noscript>\n<div id=\"app\" data-plain=\"{plain}\" data-title=\"{title}\"></div>\n\
         </body>\n</html>\n"
    );
    typed("text/html; charset=utf-8", page.into_bytes())
}
