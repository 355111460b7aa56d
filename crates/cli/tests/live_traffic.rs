//! A page that is asked hundreds of times a second, while its program works.

use crate::watched::{PATIENCE, lab, run_live};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

const PAGES: usize = 8;
const EACH: usize = 60;
const FOLLOWERS: usize = 80;
const STATES: usize = 40;

fn is_state(line: &str) -> bool {
    line.starts_with("data:") && line.contains("tenure.live.state/1")
}

#[test]
fn many_questions_hinder_neither_the_program_nor_the_stream_of_states() {
    const TEST: &str = "live traffic";
    let Some(lab) = lab(TEST) else { return };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (mut program, page) = run_live(lab, jdk, folder.path(), &["--record", "full"]);
    page.counting(&mut program);
    // One browser follows, as slowly as it likes; another is gone at once.
    let follow = || {
        let mut stream = TcpStream::connect(&page.host).expect("connected");
        let (base, host) = (&page.base, &page.host);
        let request = format!("GET {base}api/v1/events HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    };
    let browser = follow();
    drop(follow());
    page.command("interval?ms=50");
    let views = [
        "state",
        "timeline?points=100",
        "classes?source=recording",
        "allocations?by=site",
        "stacks",
    ];
    std::thread::scope(|scope| {
        for _ in 0..FOLLOWERS {
            let stream = follow();
            scope.spawn(move || {
                stream.set_read_timeout(Some(PATIENCE)).expect("set");
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                let states = lines.filter(|line| is_state(line)).take(STATES);
                assert_eq!(states.count(), STATES);
            });
        }
        for number in 0..PAGES {
            let page = page.clone();
            scope.spawn(move || {
                for question in 0..EACH {
                    page.json(views[(number + question) % views.len()]);
                }
            });
        }
        for _ in 0..100 {
            program.send("keep 10");
        }
    });
    program.send("other 600");
    page.command("gc");
    page.snapshot();
    let nodes = page.json("allocations?filter=Populations$Node&by=class");
    assert_eq!(nodes["rows"][0]["allocations"], 1000, "{nodes}");
    assert_eq!(nodes["rows"][0]["live"], 1000, "{nodes}");
    // The browser that follows has the states.
    let lines = BufReader::new(browser).lines();
    assert!(lines.map_while(Result::ok).any(|line| is_state(&line)));
    program.child.kill().expect("killed");
}
