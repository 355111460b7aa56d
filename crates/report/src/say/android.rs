//! Analyses of Android heaps.

use super::Say;
use super::leaks::destroyed_doc;
use super::sets::bitmap_table;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use heap_analysis::android::Android;

impl Say for Android {
    const NAME: &'static str = "android";

    fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let sdk = self.sdk.map(|n| format!("SDK {n}"));
        let facts: Vec<String> = self.device.iter().cloned().chain(sdk).collect();
        if !facts.is_empty() {
            doc = doc.text([Span::Value(facts.join(", "))]);
        }
        if !self.heaps.is_empty() {
            let mut table = Table::new([number("objects"), number("shallow"), words("heap")]);
            for heap in &self.heaps {
                table.row([
                    Cell::count(heap.objects),
                    Cell::bytes(heap.shallow),
                    Cell::value(heap.name.clone()),
                ]);
            }
            doc = doc.heading("Heaps").table(table);
        }
        doc = doc.heading("Destroyed and still held");
        if self.destroyed.is_empty() {
            doc = doc.text([Span::from(
                "No destroyed activity, fragment, dialog or service, no cleared view model, and nothing that LeakCanary watches is held.",
            )]);
        }
        doc = doc.append(destroyed_doc(&self.destroyed));
        let mut native = Table::new([number("objects"), number("native"), words("class")]);
        for row in &self.native {
            native.row([
                Cell::count(row.objects),
                Cell::bytes(row.bytes),
                Cell::class(row.class.clone()),
            ]);
        }
        native.when_empty = "no NativeAllocationRegistry in this dump";
        let mut bitmaps = bitmap_table(&self.bitmaps);
        bitmaps.omitted = self.omitted_bitmaps;
        doc.heading("Native memory of Java objects")
            .table(native)
            .heading("Bitmaps")
            .table(bitmaps)
    }
}
