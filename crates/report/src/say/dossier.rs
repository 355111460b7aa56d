//! A whole report, chapter by chapter.

use super::Say;
use super::overview::facts_doc;
use crate::doc::{Doc, Span};
use heap_analysis::tables::dossier::Dossier;

/// A chapter: an anchor, a title, the content.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// Short name for links.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Content.
    pub doc: Doc,
}

/// The chapters of a report.
pub fn chapters(dossier: &Dossier) -> Vec<Chapter> {
    let chapter = |id, title, doc| Chapter { id, title, doc };
    let mut list = vec![
        chapter("leaks", "Leak suspects", dossier.leaks.doc()),
        chapter("classes", "Classes", dossier.histogram.doc()),
        chapter("consumers", "Biggest consumers", dossier.consumers.doc()),
        chapter("dominators", "Dominator tree", dossier.dominators.doc()),
        chapter("threads", "Threads", dossier.threads.doc()),
        chapter("roots", "GC roots", dossier.roots.doc()),
        chapter("loaders", "Class loaders", dossier.loaders.doc()),
        chapter(
            "unreachable",
            "Unreachable objects",
            dossier.unreachable.doc(),
        ),
    ];
    if let Some(properties) = &dossier.properties {
        list.push(chapter("properties", "Properties", properties.doc()));
    }
    list.push(chapter("file", "State of the file", dossier.verdict.doc()));
    list
}

impl Say for Dossier {
    const NAME: &'static str = "report";

    fn doc(&self) -> Doc {
        let mut doc = Doc::new()
            .heading("Heap report")
            .append(facts_doc(&self.facts));
        for chapter in chapters(self) {
            doc = doc
                .heading(Span::Strong(chapter.title.to_owned()))
                .append(chapter.doc);
        }
        doc
    }
}
