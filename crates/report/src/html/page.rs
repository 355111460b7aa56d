//! The page as a whole.

use super::render::render;
use crate::escape::html as escape;
use crate::json::Provenance;
use crate::say::{chapters, facts_doc, no_suspects, provenance_text};
use crate::units::{human_bytes, percent};
use heap_analysis::leaks::{Suspect, SuspectKind};
use heap_analysis::tables::dossier::Dossier;
use heap_analysis::tables::treemap::Treemap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

pub(super) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A report as one HTML page. `name` is the dump's file name.
pub fn page(name: &str, dossier: &Dossier, provenance: &Provenance) -> String {
    let title = escape(name);
    let data = treemap_json(&dossier.treemap);
    // The policy allows only scripts with the nonce. All text is escaped, so that none from the dump is a script; the nonce,
    // which the author of a dump could compute, is a second protection.
    let nonce = nonce(&data, name);
    let mut out = String::with_capacity(1 << 17);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} - heap report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    let _ = write!(
        out,
        "<header><h1>{title}</h1>\n{}{}</header>\n",
        render(&facts_doc(&dossier.facts), 2),
        in_short(dossier, provenance)
    );
    let chapters = chapters(dossier);
    out.push_str("<nav aria-label=\"Chapters\"><a href=\"#map\">Map</a>");
    for chapter in &chapters {
        let _ = write!(out, "<a href=\"#{}\">{}</a>", chapter.id, chapter.title);
    }
    out.push_str("</nav>\n<main>\n");
    out.push_str(MAP);
    for chapter in &chapters {
        let _ = write!(
            out,
            "<section id=\"{}\"><h2>{}</h2>\n{}</section>\n",
            chapter.id,
            chapter.title,
            render(&chapter.doc, 3)
        );
    }
    let _ = write!(
        out,
        "</main>\n<footer><p>{}</p></footer>\n\
         <script type=\"application/json\" id=\"areas\">{data}</script>\n\
         <script nonce=\"{nonce}\">\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&provenance_text(provenance))
    );
    out
}

fn nonce(data: &str, name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (data, name).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The summary at the top.
fn in_short(dossier: &Dossier, provenance: &Provenance) -> String {
    let mut out = String::from("<div class=\"short\">");
    if provenance.damaged {
        out.push_str(
            "<p class=\"bad\">The file is damaged. Results cover the readable part; \
             <a href=\"#file\">what is missing</a>.</p>",
        );
    }
    let suspects = &dossier.leaks.suspects;
    if suspects.is_empty() {
        let _ = write!(out, "<p>{}</p>", escape(&no_suspects(&dossier.leaks)));
    }
    for suspect in suspects.iter().take(3) {
        let _ = write!(out, "<p><a href=\"#leaks\">{}</a></p>", one_line(suspect));
    }
    out.push_str("</div>\n");
    out
}

fn one_line(suspect: &Suspect) -> String {
    let what = match (&suspect.kind, &suspect.value) {
        (SuspectKind::Class, _) => {
            format!("{} objects of {}", suspect.instances, suspect.class)
        }
        (SuspectKind::Object, Some(name)) if suspect.class == "java.lang.Class" => {
            format!("class {name}")
        }
        (SuspectKind::Object, Some(value)) => format!("{} \"{value}\"", suspect.class),
        (SuspectKind::Object, None) => suspect.class.clone(),
    };
    let held = suspect
        .holder
        .as_ref()
        .or(suspect.static_field.as_ref())
        .map(|h| format!(", held by {h}"))
        .or_else(|| {
            let local = suspect.local_of.as_ref()?;
            Some(format!(", a local variable in {}", local.frame))
        })
        .or_else(|| {
            let variable = suspect.thread_local_of.as_ref()?.variable.as_ref()?;
            Some(format!(", the thread-local variable {variable}"))
        })
        .unwrap_or_default();
    format!(
        "<b>{}</b> ({}) in {}",
        human_bytes(suspect.retained.0),
        percent(suspect.share),
        escape(&format!("{what}{held}"))
    )
}

/// The container of the map; without JavaScript the table of the dominator tree has the same data.
const MAP: &str = "<section id=\"map\"><h2>What fills the heap</h2>\n\
    <div class=\"map\" hidden><div class=\"crumbs\" id=\"crumbs\"></div>\
    <canvas id=\"treemap\" tabindex=\"0\" role=\"img\" aria-label=\"Treemap of the dominator tree. \
    Arrow keys choose, Enter goes in, Backspace goes out.\"></canvas>\
    <p class=\"status\" id=\"status\" aria-live=\"polite\"></p><div id=\"legend\"></div></div>\n\
    <noscript><p class=\"empty\">The map needs script; the <a href=\"#dominators\">dominator tree</a> \
    has the same numbers.</p></noscript></section>\n";

/// The areas as rows: parent, name, id, value, package, shallow, retained, objects. `<` is escaped so that
/// nothing can end the block.
fn treemap_json(map: &Treemap) -> String {
    let rows: Vec<serde_json::Value> = map
        .areas
        .iter()
        .map(|a| {
            serde_json::json!([
                a.parent.map_or(-1, i64::from),
                a.name,
                a.object.map(|o| o.to_string()).unwrap_or_default(),
                a.value.clone().unwrap_or_default(),
                a.package,
                a.shallow.0,
                a.retained.0,
                a.objects
            ])
        })
        .collect();
    let value = serde_json::json!({ "total": map.total.0, "areas": rows });
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
