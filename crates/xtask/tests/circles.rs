//! Files that use each other in circles.

use xtask::circles::{EXCEPTIONS, WITHOUT_CIRCLES, circles};
use xtask::tree::text_files;

#[test]
fn a_circle_is_found_through_any_number_of_files() {
    let files = [
        ("lib.rs", "pub mod a;\npub use a::A;\n"),
        ("a.rs", "use crate::b::{B, c::C};\n// use crate::z::Z;\n"),
        ("b.rs", "use super::d::mouse::D;\n"),
        ("d/mouse.rs", "use super::super::a::A;\n"),
        (
            "e.rs",
            "use crate::a::A;\nuse std::fmt;\n\n#[cfg(test)]\nmod tests {\n    use crate::f::F;\n}\n",
        ),
        ("f.rs", "use crate::e::E;\n"),
    ];
    assert_eq!(circles(&files), ["a b d/mouse"]);
    assert_eq!(circles(&files[3..]), Vec::<String>::new());
}

#[test]
fn a_child_that_uses_its_parent_is_in_a_circle_if_the_parent_uses_it() {
    let parent = ("a/mod.rs", "mod b;\nmod c;\npub use b::{B, Other};\n");
    let child = ("a/b.rs", "use super::A;\n");
    assert_eq!(circles(&[parent, child]), ["a a/b"]);
    let of_sibling = ("a/b.rs", "use super::c::{C, d::D};\nuse crate::e::E;\n");
    let sibling = ("a/c.rs", "use std::fmt;\n");
    let none = Vec::<String>::new();
    assert_eq!(circles(&[parent, of_sibling, sibling]), none);
    let of_mod = ("e/mod.rs", "use crate::a::f::F;\n");
    assert_eq!(circles(&[parent, of_sibling, sibling, of_mod]), ["a a/b e"]);
}

#[test]
fn crates_without_circles_stay_without() {
    let all = text_files();
    for name in WITHOUT_CIRCLES {
        let folder = format!("crates/{name}/src/");
        let files: Vec<(&str, &str)> = all
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(&folder)?, text.as_str())))
            .filter(|(path, _)| path.ends_with(".rs"))
            .collect();
        assert!(!files.is_empty(), "{name}");
        let known = EXCEPTIONS.iter().filter(|(of, _, _)| of == name);
        let known: Vec<&str> = known.map(|(_, circle, _)| *circle).collect();
        assert_eq!(circles(&files), known, "{name}");
    }
}
