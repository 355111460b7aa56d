//! A real browser on the page of a real JVM: record, allocate, select a range, see class and stack,
//! force a collection, see it gone, take a dump, reach the explorer. `TENURE_SCREENSHOTS=DIR` keeps
//! pictures.

use crate::watched::{Page, lab, run_live};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use testkit::browser::Browser;

/// Drags over the first chart, from one share of its width to another; something happens on the way.
fn drag(browser: &mut Browser, from: f64, to: f64, meanwhile: impl Fn()) {
    let canvas = browser.eval(
        "(() => { const b = document.querySelector('.chart canvas').getBoundingClientRect();\
         return [b.left, b.top + b.height / 2, b.width]; })()",
    );
    let number = |n: usize| canvas[n].as_f64().expect("a number");
    for (kind, share) in [
        ("mousePressed", from),
        ("mouseMoved", (from + to) / 2.0),
        ("mouseMoved", to),
        ("mouseReleased", to),
    ] {
        let x = number(0) + number(2) * share;
        let buttons = u8::from(kind != "mouseReleased");
        let event = serde_json::json!({
            "type": kind, "x": x, "y": number(1), "button": "left", "buttons": buttons, "clickCount": 1,
        });
        browser.call("Input.dispatchMouseEvent", event);
        if kind == "mousePressed" {
            meanwhile();
        }
    }
}

/// The views that need no more than what the program has done, each with a word of its own.
fn every_view(browser: &mut Browser, picture: &dyn Fn(&mut Browser, &str)) {
    for (view, text) in [
        ("stacks?filter=Populations", "Populations.main"),
        ("classes?filter=Populations", "Populations$Bag"),
        ("instances?class=Populations$Bag", "500 instances"),
        ("instances?class=Populations$Bag&by=size100", "500"),
        ("instances?class=Populations$Bag&by=minute", "500 instances"),
        (
            "instances?class=Populations$Bag&source=live",
            "Call toString, equals, hashCode",
        ),
        ("native", "libjvm.so"),
        ("references", "References that native code has made"),
        ("options", "MODULE CLASS OPTIONS"),
        ("advice", "Could be saved"),
        (
            "source?frame=Populations.keep(Populations.java:23)",
            "static void keep(int count)",
        ),
        ("events", "Force GC"),
    ] {
        browser.eval(&format!("location.hash = '#/{view}'"));
        browser.wait(&format!(
            "document.querySelector('main').textContent.includes({text:?})"
        ));
        let name = view.split('?').next().unwrap_or(view);
        if !view.contains('&') {
            picture(browser, name);
        }
    }
}

fn type_in(browser: &mut Browser, text: &str) {
    for key in text.chars() {
        browser.press(&key.to_string());
    }
}

/// A filter is typed with pauses, also one that is wrong for a while: the field stays, and the focus.
fn a_filter_is_typed(browser: &mut Browser) {
    browser.eval("location.hash = '#/allocations'");
    let field = "document.querySelector('main input[type=search]')";
    browser.wait(&format!("{field} !== null"));
    browser.click(field);
    type_in(browser, "No");
    browser.wait("location.hash.includes('filter=No')");
    browser.wait("document.querySelector('tbody')?.textContent.includes('Populations$Node')");
    browser.wait(&format!("document.activeElement === {field}"));
    type_in(browser, "de");
    browser.wait("location.hash.includes('filter=Node')");
    browser.wait("document.querySelector('tbody')?.textContent.includes('Populations$Node')");
    browser.click("document.querySelector('main input[type=checkbox]')");
    browser.wait("location.hash.includes('regex=Node')");
    browser.eval(&format!(
        "{field}.focus(); {field}.setSelectionRange(99, 99)"
    ));
    type_in(browser, "(");
    browser.wait("document.querySelector('.notice.bad') !== null");
    browser.wait(&format!("document.activeElement === {field}"));
    type_in(browser, "|x)");
    browser.wait(
        "document.querySelector('.notice.bad') === null && document.querySelector('tbody tr')",
    );
    // A head sorts, and turns round what it sorted.
    let head = "[...document.querySelectorAll('th')].find((h) => h.textContent === 'Allocations')";
    for order in ["descending", "ascending"] {
        browser.click(&format!("{head}.querySelector('button')"));
        browser.wait(&format!("{head}?.getAttribute('aria-sort') === '{order}'"));
    }
}

/// A range is in the address.
fn is_selected(browser: &mut Browser) {
    browser.wait("/from=\\d+/.test(location.hash)");
}

/// A range goes from view to view by keys, and is selected by them.
fn everything_goes_by_keys(browser: &mut Browser, begin: u64, end: u64) {
    browser.eval(&format!(
        "document.activeElement.blur(); location.hash = '#/allocations?from={begin}&to={end}'"
    ));
    browser.wait("document.querySelector('#clear-range') !== null");
    type_in(browser, "gs");
    browser.wait(&format!(
        "location.hash.startsWith('#/stacks?') && location.hash.includes('from={begin}&to={end}')"
    ));
    browser.eval("location.hash = '#/memory'");
    browser.wait("document.querySelector('#dump-list') !== null");
    browser.eval(
        "(() => { const canvas = document.querySelector('.chart canvas'); canvas.focus(); \
         const send = (type, key) => canvas.dispatchEvent(new KeyboardEvent(type, { key, shiftKey: true, bubbles: true })); \
         for (let n = 0; n < 9; n += 1) send('keydown', 'ArrowLeft'); send('keyup', 'Shift'); })()",
    );
    is_selected(browser);
}

/// Forms without JavaScript are of this site.
fn a_plain_button_is_pressed(browser: &mut Browser, url: &str) {
    browser.open(&format!("{url}plain/events"));
    let marked = "document.body.textContent.includes('Pressed by hand')";
    assert_eq!(browser.eval(marked), false);
    browser.open(&format!("{url}plain/"));
    browser.wait("document.querySelector('input[name=text]') !== null");
    browser.eval("document.querySelector('input[name=text]').value = 'Pressed by hand & foot'");
    browser.eval("window.before = true");
    browser.click("document.querySelector('form[action$=\"commands/mark\"] button')");
    // The answer leads to the same address: another document.
    browser.wait("window.before === undefined && document.readyState === 'complete'");
    browser.open(&format!("{url}plain/events"));
    browser.wait("document.body.textContent.includes('Pressed by hand & foot')");
}

/// Has a dump taken on the page, which is not the first one if `number` is above 1. The page says these things of it.
fn take_dump(browser: &mut Browser, page: &Page, number: usize, words: [&str; 2]) -> Value {
    browser.eval("location.hash = '#/memory'");
    browser.wait("document.querySelector('#dump-list') !== null");
    browser.click("document.querySelector('#dump')");
    for words in words {
        let entry = format!("document.querySelectorAll('#dumps li')[{}]", number - 1);
        browser.wait(&format!("{entry}?.textContent.includes('{words}')"));
    }
    let state = page.until("state", |state| {
        state["dumps"][number - 1]["stage"] == "ready"
    });
    state["dumps"][number - 1].clone()
}

/// Nothing has loaded the agent yet.
fn the_vm_writes_a_dump_without_the_agent(browser: &mut Browser, page: &Page) {
    let words = [
        "written by the VM: the program was stopped for up to ",
        "(no snapshot: the agent is not loaded",
    ];
    let dump = take_dump(browser, page, 1, words);
    assert_eq!(dump["written"]["by"], "vm", "{dump}");
    browser.eval("location.hash = '#/'");
    browser.wait("document.querySelector('#record') !== null");
}

fn a_snapshot_is_taken_with_the_agent(browser: &mut Browser, page: &Page) {
    let words = [
        "snapshot: the program was stopped for ",
        "objects have their stacks",
    ];
    let dump = take_dump(browser, page, 2, words);
    assert_eq!(dump["written"]["by"], "snapshot", "{dump}");
    assert!(dump["written"]["stopped_us"].as_u64() > Some(0), "{dump}");
}

#[test]
fn a_range_is_recorded_selected_collected_and_dumped_in_the_browser() {
    const TEST: &str = "live page in a browser";
    let Some(lab) = lab(TEST) else { return };
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.tool("javac").is_file()) else {
        return;
    };
    let Some(mut browser) = Browser::start() else {
        return testkit::skip(TEST, testkit::Need::Chromium, "there is no Chromium");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (mut program, page) = run_live(
        lab,
        jdk,
        folder.path(),
        &["--source", concat!(env!("CARGO_MANIFEST_DIR"), "/tests")],
    );
    let shots = std::env::var_os("TENURE_SCREENSHOTS").map(PathBuf::from);
    let picture = |browser: &mut Browser, name: &str| {
        let Some(folder) = &shots else { return };
        for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
            browser.look(width, 900, dark);
            std::thread::sleep(Duration::from_millis(600));
            let look = if dark { "dark" } else { "light" };
            browser.screenshot(&folder.join(format!("live-{name}-{width}-{look}.png")));
        }
        browser.look(1280, 900, false);
    };
    browser.look(1280, 900, false);
    browser.open(&format!("http://{}{}", page.host, page.base));
    browser.wait("document.querySelectorAll('.chart canvas').length >= 4");
    the_vm_writes_a_dump_without_the_agent(&mut browser, &page);
    // Every block of native code, too.
    browser.eval("document.querySelector('#blocks').value = '1'");
    browser.click("document.querySelector('#record')");
    page.counting(&mut program);
    let begin = page.snapshot();
    program.send("keep 1234");
    let end = page.snapshot();
    // The selection by mouse is a range in the address, however often the view is renewed meanwhile; the test then
    // takes the exact one.
    drag(&mut browser, 0.5, 0.9, || {
        page.snapshot();
    });
    is_selected(&mut browser);
    browser.eval(&format!(
        "location.hash = '#/allocations?from={begin}&to={end}&by=site&filter=Populations'"
    ));
    browser.wait("document.querySelector('main').textContent.includes('Populations.keep(')");
    browser.wait(
        "[...document.querySelectorAll('tbody td.n')].some((c) => c.textContent === '1,234')",
    );
    picture(&mut browser, "allocations");
    program.send("drop");
    program.send("other 600");
    browser.click("document.querySelector('#gc')");
    page.until("timeline", |it| {
        it["events"].to_string().contains("Force GC")
    });
    page.until("state", |state| state["busy"].is_null());
    let gone = page.snapshot();
    browser.eval(&format!(
        "location.hash = '#/allocations?from={end}&to={gone}&by=class&filter=Populations$Node'"
    ));
    browser.wait(
        "[...document.querySelectorAll('tbody td.n')].some((c) => c.textContent === '-1,234')",
    );
    program.send("bags 500");
    let native_begin = page.snapshot();
    program.send("direct 3");
    let native_end = page.snapshot();
    a_snapshot_is_taken_with_the_agent(&mut browser, &page);
    picture(&mut browser, "memory");
    every_view(&mut browser, &picture);
    // A range that is selected is one of native memory, too: three blocks of a mebibyte.
    browser.eval(&format!(
        "location.hash = '#/native?from={native_begin}&to={native_end}&by=site&filter=Populations.direct('"
    ));
    browser.wait("document.querySelector('main').textContent.includes('3.0 MiB')");
    browser.eval(&format!(
        "location.hash = '#/native?from={native_end}&by=site&filter=Unsafe.allocateMemory'"
    ));
    browser.wait(
        "document.querySelector('main').textContent.includes('Nothing matches in this range')",
    );
    a_filter_is_typed(&mut browser);
    everything_goes_by_keys(&mut browser, begin, end);
    // Two tables are saved, and what came between them is the difference.
    browser.eval("location.hash = '#/saved'");
    for number in ["1", "2"] {
        browser.wait("document.querySelector('#save') !== null");
        browser.click("document.querySelector('#save')");
        page.until("state", |state| {
            state["saved"].as_array().map(Vec::len) == number.parse().ok()
        });
        program.send("bags 77");
        page.snapshot();
    }
    browser.wait("document.querySelector('main').textContent.includes('What changed')");
    browser.eval("location.hash = '#/saved?filter=Populations$Bag'");
    browser
        .wait("[...document.querySelectorAll('tbody td.n')].some((c) => c.textContent === '+77')");
    picture(&mut browser, "saved");
    browser.eval("location.hash = '#/memory'");
    browser.wait("document.querySelector('#dumps li:last-child a') !== null");
    browser.click("document.querySelector('#dumps li:last-child a')");
    browser.wait("location.pathname.endsWith('/dumps/2/')");
    browser.wait("document.querySelector('main')?.dataset.view === 'overview'");
    browser.click("document.querySelector('#program')");
    browser.wait("document.querySelector('#dump-list') !== null");
    a_plain_button_is_pressed(&mut browser, &format!("http://{}{}", page.host, page.base));
    program.child.kill().expect("killed");
}
