//! A real browser on what only some dumps have: an earlier dump to compare with, screens and services of Android.

use crate::browser::{Opened, app_with_bitmaps, browser, settled, show, text};
use testkit::dump::{ClassSpec, Elements, Heap, IdSize, Root, Type, Value};

/// A registry whose static array has so many sessions, each with a name and a buffer of 100 bytes.
fn sessions(count: usize) -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let fields = [
        ("name", Type::Object),
        ("hits", Type::Int),
        ("buffer", Type::Object),
    ];
    let session = heap.class("shop/Session", object, &fields);
    let registry = heap.class_spec(ClassSpec {
        name: "shop/Registry",
        super_class: object,
        statics: vec![("ALL", Value::Object(0))],
        ..ClassSpec::default()
    });
    let array = heap.object_array_class();
    let mut all = Vec::new();
    for n in 0..count {
        let name = heap.string(&format!("visitor-{n}"));
        let buffer = heap.primitive_array(Elements::zeros(Type::Byte, 100));
        let values = [
            Value::Object(name),
            Value::Int(n as i32),
            Value::Object(buffer),
        ];
        all.push(heap.instance(session, &values));
    }
    let all = heap.object_array(array, &all);
    heap.set_static(registry, "ALL", Value::Object(all));
    heap.root(Root::StickyClass, registry);
    heap.bytes()
}

#[test]
fn what_grew_since_an_earlier_dump_is_shown_and_leads_to_its_objects() {
    let Some(mut browser) = browser("what_grew_since_an_earlier_dump") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = [("before.hprof", 100), ("after.hprof", 340)].map(|(name, count)| {
        let file = folder.path().join(name);
        std::fs::write(&file, sessions(count)).unwrap();
        file
    });
    let opened = Opened::new(&after);
    opened.explorer.compare_with(&before);
    opened.wait_until_ready();
    browser.look(1280, 900, false);
    browser.open(&opened.running.url());
    settled(&mut browser);
    browser.click("document.querySelector('nav a[data-view=compare]')");
    browser.wait("location.hash === '#/compare'");
    settled(&mut browser);
    let page = text(&mut browser);
    for words in [
        "before.hprof",
        "after.hprof",
        "static ALL",
        "100 → 340 of shop.Session",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let link = "[...document.querySelectorAll('main tr')].find(r => r.innerText.startsWith('+240')).querySelector('a')";
    let row = browser.eval(&format!("({link}).closest('tr').innerText"));
    let row = row.as_str().unwrap();
    assert!(
        row.starts_with("+240") && row.contains("100 → 340"),
        "{row}"
    );
    browser.click(link);
    browser.wait("location.hash.startsWith('#/objects')");
    settled(&mut browser);
    // Objects without a value of their own are distinguished by their fields.
    let page = text(&mut browser);
    assert!(page.contains("name = \"visitor-7\", hits = 7"), "{page}");
    browser.click("document.querySelector('main tbody .obj a')");
    browser.wait("location.hash.startsWith('#/object?')");
    settled(&mut browser);
    let crumbs = browser.eval("document.querySelector('.crumbs').innerText");
    assert_eq!(crumbs, "class shop.Registry .ALL › Object[] [0] › this");
    let heading = browser.eval("document.querySelector('h1').innerText");
    assert!(
        heading.as_str().unwrap().starts_with("Session 0x"),
        "{heading}"
    );
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
fn a_dump_of_android_has_a_page_of_what_should_be_gone() {
    let Some(mut browser) = browser("a_dump_of_android_has_a_page") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.hprof");
    let name = "square+leakcanary__leak_service_binder.hprof";
    let (bytes, expected) = match testkit::corpus::corpus_dump(name) {
        Some(dump) => (dump.bytes(), ["LeakyService", "leakAllTheBinders"]),
        // Without the corpus: nothing is held there that should not be.
        None => (app_with_bitmaps(), ["No destroyed activity", "app"]),
    };
    std::fs::write(&file, bytes).unwrap();
    let opened = Opened::new(&file);
    opened.wait_until_ready();
    for width in [400, 1280] {
        browser.look(width, 900, width == 400);
        browser.open(&opened.running.url());
        settled(&mut browser);
        show(&mut browser, "android");
        let page = text(&mut browser);
        for words in expected {
            assert!(page.contains(words), "{words}: {page}");
        }
        let wider = browser.eval("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wider, false, "{width}");
    }
    assert_eq!(browser.errors, Vec::<String>::new());
}
