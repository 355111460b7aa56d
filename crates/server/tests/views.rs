//! The rule of the explorer, for each of its views: JSON, CSV, a page without JavaScript, the query it
//! shows, and rows that are sets which can be passed on.

use crate::site::Site;
use heap_graph::{LayoutModel, Options, Strength};
use serde_json::Value as Json;
use server::explorer::view_names;
use std::collections::BTreeSet;

/// What a view must be asked with.
fn asked(view: &str, map: &str) -> Vec<String> {
    match view {
        "histogram" => ["class", "superclass", "package", "loader", "heap", "site"]
            .map(|by| format!("histogram?by={by}&limit=5"))
            .to_vec(),
        "objects" => vec![format!("{view}?set=class:shop.Session&limit=5")],
        "immediate_dominators" | "merged_paths" => vec![format!("{view}?set=class:shop.Session")],
        "object" | "contents" | "paths" => vec![format!("{view}?id={map}")],
        "strings" => vec!["strings?find=visitor&limit=5".to_owned()],
        _ => vec![view.to_owned()],
    }
}

/// The sets that the rows of an answer stand for, a few of each table.
fn sets_of(answer: &Json, found: &mut BTreeSet<String>) {
    match answer {
        Json::Array(list) => list.iter().take(3).for_each(|item| sets_of(item, found)),
        Json::Object(row) => {
            let text = |key: &str| row.get(key).and_then(Json::as_str);
            let id = |key: &str| text(key).filter(|id| id.starts_with("0x") && *id != "0x0");
            found.extend(id("object").map(|id| format!("object:{id}")));
            found.extend(id("example").map(|id| format!("object:{id}")));
            found.extend(id("largest").map(|id| format!("object:{id}")));
            found.extend(id("class_id").map(|id| format!("class:{id}")));
            if let (Some(_), Some(object)) = (text("loader"), text("object")) {
                found.insert(format!("loader:{object}"));
            }
            found.extend(text("package").map(|name| format!("package:{name}")));
            found.extend(text("heap").map(|name| format!("heap:{name}")));
            if row.contains_key("frames") {
                found.extend(row.get("trace").map(|serial| format!("site:{serial}")));
            }
            row.values().for_each(|value| sets_of(value, found));
        }
        _ => {}
    }
}

/// Views whose answers have no rows of objects: numbers, words, a picture.
const WITHOUT_SETS: [&str; 6] = [
    "android",
    "bitmaps",
    "compare",
    "properties",
    "summary",
    "validate",
];

#[test]
fn every_view_has_forms_a_query_and_rows_that_lead_on() {
    let site = Site::new();
    site.explorer.compare_with(&site.file());
    let query =
        "sql:(select field(id, 'SESSIONS') from classes where name = 'shop.SessionRegistry')";
    let query: String = query.bytes().map(|b| format!("%{b:02X}")).collect();
    let map = site.get(&format!("api/v1/objects?set={query}"));
    let map = map["rows"][0]["object"]
        .as_str()
        .expect("the map")
        .to_owned();
    let mut checked = BTreeSet::new();
    for view in view_names() {
        // It is a picture, which the object has and no table.
        if view == "bitmap_picture" {
            continue;
        }
        for address in asked(view, &map) {
            let answer = site.get(&format!("api/v1/{address}"));
            let schema = answer["schema"].as_str().unwrap_or_default();
            assert!(schema.starts_with("tenure."), "{address}: {schema}");
            let and = if address.contains('?') { '&' } else { '?' };
            let (status, head, csv) =
                site.ask("GET", &format!("api/v1/{address}{and}form=csv"), "");
            assert_eq!(status, 200, "{address}: {csv}");
            let name = format!("filename=\"{view}.csv\"");
            assert!(
                head.contains("text/csv") && head.contains(&name),
                "{address}: {head}"
            );
            // The demo is no dump of Android, and it is compared with itself: a head and no rows.
            assert!(
                csv.lines().count() > 1 || ["android", "bitmaps", "compare"].contains(&view),
                "{address}: {csv}"
            );
            let (status, _, plain) = site.ask("GET", &format!("plain/{address}"), "");
            assert!(
                status == 200 && plain.contains("<main>"),
                "{address}: {plain}"
            );
            let shown = site.get(&format!("api/v1/command/{address}"));
            let queries = shown["queries"].as_array().map_or(0, Vec::len);
            assert!(
                queries > 0 || shown["command"].is_string(),
                "{address}: {shown}"
            );

            let mut sets = BTreeSet::new();
            sets_of(&answer, &mut sets);
            assert!(
                !sets.is_empty() || WITHOUT_SETS.contains(&view),
                "{address}: {answer}"
            );
            for set in sets {
                if checked.insert(set.clone()) {
                    let escaped: String = set.bytes().map(|b| format!("%{b:02X}")).collect();
                    let members = site.get(&format!("api/v1/objects?set={escaped}&all=1&limit=1"));
                    assert_eq!(members["schema"], "tenure.objects/1", "{set} of {address}");
                }
            }
        }
    }
    for word in ["object:", "class:", "loader:", "package:", "heap:", "site:"] {
        assert!(
            checked.iter().any(|set| set.starts_with(word)),
            "no {word} in {checked:?}"
        );
    }
}

#[test]
fn plain_pages_link_names_to_the_objects_that_they_stand_for() {
    let site = Site::new();
    let page = |view: &str| {
        let (status, _, page) = site.ask("GET", &format!("plain/{view}"), "");
        assert_eq!(status, 200, "{view}: {page}");
        page
    };
    let packages = page("histogram?by=package");
    assert!(
        packages.contains("<a href=\"objects?set=package:shop\">shop</a>"),
        "{packages}"
    );
    for (view, word) in [("histogram", "class"), ("histogram?by=superclass", "sub")] {
        let classes = page(view);
        let link = format!("<a href=\"objects?set={word}:0x");
        assert!(classes.contains(&link), "{classes}");
    }
    for view in [
        "histogram?by=package",
        "waste",
        "dominator_groups?by=package",
        "merged_paths?set=class:shop.Session",
    ] {
        let page = page(view);
        for link in page.split("<a href=\"objects?set=").skip(1) {
            let set = link.split('"').next().expect("an address");
            let (status, _, body) =
                site.ask("GET", &format!("api/v1/objects?set={set}&limit=1"), "");
            assert_eq!(status, 200, "{set} of {view}: {body}");
        }
    }
}

#[test]
fn csv_has_the_tables_that_the_command_prints() {
    let site = Site::new();
    for (view, head) in [
        ("leaks", "suspect,kind,class,object,"),
        ("summary", "name,value"),
    ] {
        let (status, _, csv) = site.ask("GET", &format!("api/v1/{view}?form=csv"), "");
        assert_eq!(status, 200, "{csv}");
        assert!(csv.starts_with(head), "{csv}");
    }
}

#[test]
fn merged_paths_count_the_objects_that_no_root_reaches() {
    let site = Site::new();
    let objects = site.get("api/v1/objects?set=unreachable&limit=1");
    let paths = site.get("api/v1/merged_paths?set=unreachable&all=1");
    assert!(paths["unreachable"].as_u64() > Some(0), "{paths}");
    assert_eq!(paths["unreachable"], objects["total"]["objects"]);
}

#[test]
fn a_set_by_group_is_its_histogram() {
    let site = Site::new();
    let groups = site.get("api/v1/objects?set=sub:java.lang.Object&by=package&limit=3");
    let histogram = site.get("api/v1/histogram?set=sub:java.lang.Object&by=package&limit=3");
    assert_eq!(groups["schema"], "tenure.histogram/1");
    assert_eq!(groups, histogram);
}

#[test]
fn the_command_of_a_view_has_the_options_of_the_explorer() {
    let options = Options {
        strength: Strength::Strong,
        layout: LayoutModel::Mat,
        snapshot: 1,
        ..Options::default()
    };
    let site = Site::with(options);
    let command = site.get("api/v1/command/leaks")["command"].clone();
    let command = command.as_str().expect("a command");
    let want = "leak.hprof#1' --layout mat --strength strong";
    assert!(command.ends_with(want), "{command}");
    let (status, _, body) = site.ask("GET", "api/v1/command/leaks?depe=1", "");
    assert_eq!(status, 400, "{body}");
}

#[test]
fn the_quick_histogram_of_a_dump_with_an_index_is_the_histogram() {
    let site = Site::new().again();
    assert_eq!(site.get("api/v1/state")["quick"], false);
    for choice in ["limit=5", "by=package&limit=3&all=1"] {
        let quick = site.get(&format!("api/v1/quick_histogram?{choice}"));
        assert_eq!(quick, site.get(&format!("api/v1/histogram?{choice}")));
    }
    let (status, _, page) = site.ask("GET", "plain/quick_histogram", "");
    assert!(status == 200 && page.contains("shop.Session"), "{page}");
}

#[test]
fn a_set_whose_name_is_not_there_is_an_error() {
    let site = Site::new();
    for (set, message) in [
        ("heap:ap", "heap:ap is not in this dump"),
        (
            "package:shp",
            "package:shp is not in this dump; did you mean package:shop?",
        ),
    ] {
        for view in ["objects", "histogram", "merged_paths"] {
            let (status, _, body) = site.ask("GET", &format!("api/v1/{view}?set={set}"), "");
            assert_eq!(status, 404, "{view}: {body}");
            let answer: Json = serde_json::from_str(&body).expect("JSON");
            assert_eq!(answer["error"]["message"], message, "{view}");
        }
    }
}

#[test]
fn a_parameter_that_a_view_does_not_have_is_refused() {
    let site = Site::new();
    for (asked, want) in [
        (
            "histogram?sorted=name",
            "sorted: histogram has no such parameter (it has by, ",
        ),
        ("histogram?sorted=name", "; did you mean sort?"),
        ("summary?by=class", "by: summary has no such parameter"),
        ("histogram?all=yes", "all=yes: expected 1 or 0"),
    ] {
        let (status, _, body) = site.ask("GET", &format!("api/v1/{asked}"), "");
        assert_eq!(status, 400, "{asked}: {body}");
        let answer: Json = serde_json::from_str(&body).expect("JSON");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(want), "{message}");
    }
}

#[test]
fn an_answer_in_part_becomes_the_whole_answer_for_who_asks_again() {
    let site = Site::new();
    let largest = site.get("api/v1/dominators?limit=1")["nodes"][0]["object"].clone();
    let paths = format!("paths?id={}", largest.as_str().expect("an id"));
    for view in [
        &*paths,
        "strings?find=visitor-.*7&limit=20",
        "merged_paths?set=class:java.lang.String&top=20",
        "histogram?set=all&by=superclass",
        "histogram?set=retained:class:java.lang.Thread",
        "objects?set=class:java.lang.String&sort=name&offset=50&limit=20",
        "waste?limit=7",
    ] {
        let mut parts = Vec::new();
        let whole = testkit::until(|| {
            let (status, _, body) = site.ask("GET", &format!("api/v1/{view}&soon=1"), "");
            let answer: Json = serde_json::from_str(&body).unwrap();
            match (status, &answer["complete"]) {
                (200, Json::Bool(false)) => parts.push(answer),
                (200, complete) => {
                    assert_eq!(*complete, Json::Null);
                    return Ok(answer);
                }
                (202, _) => assert_eq!(answer["error"]["kind"], "later"),
                _ => panic!("{view}: {status} {body}"),
            }
            Err(view)
        });
        assert_eq!(whole, site.get(&format!("api/v1/{view}")), "{view}");
        for part in parts {
            assert_eq!(part["schema"], whole["schema"]);
            if view.starts_with("strings") {
                // The first rows are those of the whole answer.
                let (some, all) = (&part["rows"], whole["rows"].as_array().unwrap());
                let some = some.as_array().unwrap();
                assert_eq!(some[..], all[..some.len()]);
            }
        }
    }
    let (status, _, _) = site.ask("GET", "api/v1/objects?set=class:no.Such&soon=1", "");
    assert_eq!(status, 404);
}

#[test]
fn notes_have_their_table_as_csv() {
    let site = Site::new();
    let note = r##"{"view":"#/leaks","title":"Leaks","text":"=1+1, and \"more\""}"##;
    let (status, _, body) = site.ask("POST", "api/v1/notes", note);
    assert_eq!(status, 200, "{body}");
    let (status, head, csv) = site.ask("GET", "api/v1/notes?form=csv", "");
    assert_eq!(status, 200);
    assert!(head.contains("filename=\"notes.csv\""), "{head}");
    assert_eq!(
        csv,
        "view,title,text\r\n#/leaks,Leaks,\"'=1+1, and \"\"more\"\"\"\r\n"
    );
    let (status, _, body) = site.ask("GET", "api/v1/notes?form=pdf", "");
    assert_eq!(status, 400, "{body}");
}
