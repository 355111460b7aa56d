//! Compares every number this crate writes by hand with the headers of the JDKs
//! on this machine. Without a JDK the test reports this and passes.

use std::fs;
use std::path::PathBuf;

use jvmti::Capability;
use jvmti::sys::{jni_slot, jvmti_slot, vm_slot};

/// The include directories of JDKs found by the usual means.
fn includes() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    if let Ok(entries) = fs::read_dir("/usr/lib/jvm") {
        homes.extend(entries.flatten().map(|entry| entry.path()));
    }
    let mut found: Vec<PathBuf> = homes
        .iter()
        .map(|home| home.join("include"))
        .filter(|dir| dir.join("jvmti.h").exists())
        .filter_map(|dir| dir.canonicalize().ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Names of the function pointers between two marks of a header, in order; C
/// `void *reserved` slots count.
fn slots(text: &str, from: &str, to: &str) -> Vec<String> {
    let start = text.find(from).expect("the struct begins");
    let body = &text[start..];
    let body = &body[..body.find(to).expect("the struct ends")];
    let mut names = Vec::new();
    for part in body.split(['\n', ';']) {
        let name = if let Some((_, rest)) = part.split_once("JNICALL *") {
            rest
        } else if let Some((_, rest)) = part.split_once("void *reserved") {
            rest
        } else {
            continue;
        };
        names.push(name.chars().take_while(|c| c.is_alphanumeric()).collect());
    }
    names
}

fn check(used: &[(&str, usize)], table: &[String], first: usize, optional_past: usize) {
    for (name, slot) in used {
        match table.get(slot - first) {
            Some(found) => assert_eq!(found, name, "slot {slot}"),
            None => assert!(*slot > optional_past, "{name} = {slot} is past the table"),
        }
    }
}

#[test]
fn ordinals_and_bits_agree_with_the_headers() {
    let includes = includes();
    if includes.is_empty() {
        testkit::skip(
            "layouts of the headers",
            testkit::Need::Jdk,
            "no JDK with include/jvmti.h found",
        );
    }
    for dir in includes {
        let jvmti = fs::read_to_string(dir.join("jvmti.h")).expect("jvmti.h");
        let jni = fs::read_to_string(dir.join("jni.h")).expect("jni.h");
        let table = slots(
            &jvmti,
            "typedef struct jvmtiInterface_1_",
            "} jvmtiInterface_1;",
        );
        check(jvmti_slot::ALL, &table, 1, 155);
        check(
            jni_slot::ALL,
            &slots(&jni, "struct JNINativeInterface_ {", "\n};"),
            0,
            232,
        );
        check(
            vm_slot::ALL,
            &slots(&jni, "struct JNIInvokeInterface_ {", "\n};"),
            0,
            7,
        );

        let start = jvmti
            .find("unsigned int can_tag_objects")
            .expect("capabilities");
        let bits: Vec<&str> = jvmti[start..]
            .lines()
            .take_while(|line| !line.contains("jvmtiCapabilities"))
            .filter_map(|line| {
                line.trim()
                    .strip_prefix("unsigned int ")?
                    .split_whitespace()
                    .next()
            })
            .collect();
        for (capability, name) in Capability::ALL {
            match bits.get(*capability as usize) {
                Some(found) if !found.is_empty() && *found != ":" => assert_eq!(found, name),
                _ => assert!(*capability as usize > 40, "{name}"),
            }
        }
    }
}
