//! The cost of each phase of an analysis, for developers who optimize it (`--profile-phases`).

use crate::doc::{Cell, Doc, Span, Table, number, words};
use heap_graph::Profile;
use hprof::Bytes;

/// One row per phase; the bytes per object are those of the largest private memory.
pub fn table(profile: &Profile) -> Doc {
    let mut table = Table::new([
        words("phase"),
        number("CPU s"),
        number("wall s"),
        number("walked"),
        number("random accesses"),
        number("arrays"),
        number("private"),
        number("private/object"),
    ]);
    let text = |text: String| Cell::from(Span::from(text));
    let each = |bytes: u64| match profile.objects {
        0 => Cell::empty(),
        objects => text(format!("{:.1}", bytes as f64 / objects as f64)),
    };
    for phase in &profile.phases {
        table.row([
            text(phase.name.to_owned()),
            text(format!("{:.3}", phase.cpu.as_secs_f64())),
            text(format!("{:.3}", phase.wall.as_secs_f64())),
            Cell::bytes(Bytes(phase.walked)),
            Cell::count(phase.random),
            Cell::bytes(Bytes(phase.arrays)),
            Cell::bytes(Bytes(phase.private)),
            each(phase.private),
        ]);
    }
    let phases = || profile.phases.iter();
    let most = |of: fn(&heap_graph::Phase) -> u64| phases().map(of).max().unwrap_or(0);
    let private = most(|phase| phase.private);
    table.total = Some(vec![
        text("sum, or the most".to_owned()),
        text(format!(
            "{:.3}",
            phases().map(|p| p.cpu.as_secs_f64()).sum::<f64>()
        )),
        text(format!(
            "{:.3}",
            phases().map(|p| p.wall.as_secs_f64()).sum::<f64>()
        )),
        Cell::bytes(Bytes(phases().map(|p| p.walked).sum())),
        Cell::count(phases().map(|p| p.random).sum()),
        Cell::bytes(Bytes(most(|phase| phase.arrays))),
        Cell::bytes(Bytes(private)),
        each(private),
    ]);
    Doc::new().table(table)
}
