//! Charts as SVG: no script, no external file, for light and dark colour schemes.

use std::fmt::Write;

use live_heap::{Events, Point};

use crate::escape::html as escape;
use crate::units::human_bytes;

/// Colours that colour-blind people can distinguish (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999",
];

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 22.0;

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn frame(label: &str, top: &str, end: &str, body: &str, legend: &[String]) -> String {
    let mut out = format!(
        "<svg viewBox=\"0 0 {w} {h}\" width=\"100%\" role=\"img\" aria-label=\"{label}\" \
         font-size=\"11\" fill=\"currentColor\">",
        w = WIDTH + LEFT,
        h = HEIGHT + BOTTOM,
        label = escape(label)
    );
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT} 0V{HEIGHT}H{x}\" fill=\"none\" stroke=\"currentColor\" opacity=\".4\"/>\
         <text x=\"{t}\" y=\"10\" text-anchor=\"end\">{top}</text>\
         <text x=\"{t}\" y=\"{HEIGHT}\" text-anchor=\"end\">0</text>\
         <text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{end}</text>{body}</svg>",
        x = WIDTH + LEFT,
        t = LEFT - 6.0,
        y = HEIGHT + BOTTOM - 6.0,
    );
    out.push_str("<p class=\"note\">");
    for (at, name) in legend.iter().enumerate() {
        let _ = write!(
            out,
            "<svg width=\"10\" height=\"10\" aria-hidden=\"true\"><rect width=\"10\" height=\"10\" fill=\"{}\"/></svg> {} &nbsp; ",
            colour(at),
            escape(name)
        );
    }
    out.push_str("</p>\n");
    out
}

/// Bytes by arena over allocated bytes, stacked, with a tick for each collection.
pub(super) fn occupancy(events: &Events) -> String {
    let samples = &events.timeline;
    let Some(end) = samples
        .last()
        .map(|sample| sample.at_bytes)
        .filter(|end| *end > 0)
    else {
        return String::new();
    };
    let of = |sample: &live_heap::Sample, arena: u32| {
        sample.bytes.get(arena as usize).copied().unwrap_or(0) as f64
    };
    let sums = samples
        .iter()
        .map(|sample| sample.bytes.iter().sum::<u64>());
    let peak = sums.max().unwrap_or(0).max(1);
    let x = |bytes: u64| LEFT + bytes as f64 / end as f64 * WIDTH;
    let y = |bytes: f64| HEIGHT - bytes / peak as f64 * (HEIGHT - 6.0);
    let mut floor = vec![0.0; samples.len()];
    let mut body = String::new();
    for (at, arena) in events.arenas.iter().enumerate() {
        let mut path = String::new();
        let mut back = String::new();
        for (sample, base) in samples.iter().zip(&mut floor) {
            let below = format!("L{:.1} {:.1}", x(sample.at_bytes), y(*base));
            back.insert_str(0, &below);
            *base += of(sample, arena.arena);
            let mark = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{mark}{:.1} {:.1}", x(sample.at_bytes), y(*base));
        }
        let _ = write!(
            body,
            "<path d=\"{path}{back}Z\" fill=\"{}\" opacity=\".8\"><title>{}</title></path>",
            colour(at),
            escape(&arena.name)
        );
    }
    for gc in events.collections.iter().take(2000) {
        let at = x(gc.at_bytes);
        let _ = write!(
            body,
            "<path d=\"M{at:.1} {HEIGHT}v4\" stroke=\"currentColor\"><title>collection {}</title></path>",
            gc.number
        );
    }
    let legend: Vec<_> = events
        .arenas
        .iter()
        .map(|arena| arena.name.clone())
        .collect();
    let after = format!("{} allocated", human_bytes(end));
    frame("Bytes by arena", &human_bytes(peak), &after, &body, &legend)
}

/// Survival curves: all objects, then the classes that allocate most.
pub(super) fn survival(events: &Events) -> String {
    let classes = events
        .classes
        .iter()
        .filter(|class| class.survival.len() > 1)
        .take(5);
    let mut curves: Vec<(String, &[Point])> = vec![("all objects".into(), &events.survival)];
    curves.extend(classes.map(|class| (class.name.clone(), &class.survival[..])));
    let end = curves
        .iter()
        .filter_map(|(_, points)| points.last())
        .map(|point| point.age)
        .max();
    let Some(end) = end.filter(|end| *end > 0) else {
        return String::new();
    };
    let mut body = String::new();
    for (at, (name, points)) in curves.iter().enumerate() {
        let mut path = String::new();
        for point in *points {
            let x = LEFT + point.age as f64 / end as f64 * WIDTH;
            let y = HEIGHT - point.alive * (HEIGHT - 6.0);
            if path.is_empty() {
                let _ = write!(path, "M{x:.1} {y:.1}");
            } else {
                // A step: the share is constant up to the age where it falls.
                let _ = write!(path, "H{x:.1}V{y:.1}");
            }
        }
        let _ = write!(
            body,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"><title>{}</title></path>",
            colour(at),
            escape(name)
        );
    }
    let legend: Vec<_> = curves.into_iter().map(|(name, _)| name).collect();
    let after = format!("{end} collections");
    frame(
        "Share of objects alive by collections survived",
        "100 %",
        &after,
        &body,
        &legend,
    )
}
