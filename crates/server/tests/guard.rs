//! Who is let in, and how the server ends: over real sockets.

use server::explorer::{Explorer, router};
use server::{Config, Running, start};
use std::io::{Read, Write};
use std::net::TcpStream;

fn a_server() -> (tempfile::TempDir, Running) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("not-a-dump.hprof");
    std::fs::write(&file, b"nothing of use").unwrap();
    let explorer = Explorer::open(&file, heap_graph::Options::default());
    let running = start(router(explorer), &Config::default()).unwrap();
    (dir, running)
}

fn ask(running: &Running, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    request(running, "GET", path, headers, "")
}

fn request(
    running: &Running,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(running.address()).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(n, _)| *n == "host") {
        text.push_str(&format!("host: {}\r\n", running.address()));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[test]
fn an_address_that_is_no_text_is_refused_as_every_other_wrong_one() {
    let (_dir, running) = a_server();
    let home = format!("/{}/", running.token());
    for path in [
        "api/v1/%ff",
        "api/v1/command/%C3",
        "plain/%80",
        "assets/%fe",
    ] {
        let (status, answer) = ask(&running, &format!("{home}{path}"), &[]);
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains("\"kind\": \"bad_request\""), "{answer}");
    }
    let (status, _) = ask(&running, &format!("{home}assets/%C3%A4%"), &[]);
    assert_eq!(status, 404);
}

#[test]
fn a_refused_request_ends_its_connection() {
    let (_dir, running) = a_server();
    let mut stream = TcpStream::connect(running.address()).unwrap();
    let text = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", running.address());
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[test]
fn only_the_token_and_a_loopback_name_open_the_door() {
    let (_dir, running) = a_server();
    let home = format!("/{}/", running.token());
    let port = running.address().port();
    for (path, headers, status) in [
        (home.as_str(), vec![], 200),
        (&home[..home.len() - 1], vec![], 308),
        ("/", vec![], 403),
        ("/0123456789abcdef0123456789abcdef/", vec![], 403),
        (&home[..home.len() - 2], vec![], 403),
        (&home, vec![("host", "evil.example".to_owned())], 403),
        (&home, vec![("host", "127.0.0.1".to_owned())], 403),
        (&home, vec![("host", format!("localhost:{port}"))], 200),
        (
            &home,
            vec![("origin", "http://evil.example".to_owned())],
            403,
        ),
        (&home, vec![("origin", "null".to_owned())], 403),
        (
            &home,
            vec![("origin", format!("http://127.0.0.1:{port}"))],
            200,
        ),
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let (got, answer) = ask(&running, path, &headers);
        assert_eq!(got, status, "{path} {headers:?}: {answer}");
        assert!(
            answer.contains("content-security-policy: default-src 'none'"),
            "{answer}"
        );
        assert!(
            answer.contains("x-content-type-options: nosniff"),
            "{answer}"
        );
        if status == 403 {
            assert!(
                answer.contains("\"schema\": \"tenure.error/1\""),
                "{answer}"
            );
            assert!(!answer.contains(running.token()), "{answer}");
        }
    }
    running.stop();
    running.wait();
}

#[test]
fn a_method_that_an_address_does_not_take_is_answered_in_words() {
    let (_dir, running) = a_server();
    for (method, path, media, allowed) in [
        ("POST", "api/v1/state", "application/json", "GET or HEAD"),
        (
            "DELETE",
            "api/v1/notes",
            "application/json",
            "GET or HEAD or POST",
        ),
        ("POST", "plain/", "text/html", "GET or HEAD"),
        ("PUT", "plain/histogram", "text/html", "GET or HEAD"),
    ] {
        let address = format!("/{}/{path}", running.token());
        let (status, answer) = request(&running, method, &address, &[], "");
        assert_eq!(status, 405, "{path}: {answer}");
        let allow = format!("allow: {}\r\n", allowed.replace(" or ", ","));
        let words = format!("this address does not take {method}: use {allowed}");
        for part in [media, &allow, &words] {
            assert!(answer.contains(part), "{path}: {part}: {answer}");
        }
        let is_fault = answer.contains("\"kind\": \"method_not_allowed\"");
        assert_eq!(is_fault, media == "application/json", "{answer}");
    }
    running.stop();
    running.wait();
}

#[test]
fn another_site_cannot_write_a_note() {
    let (dir, running) = a_server();
    let path = format!("/{}/api/v1/notes", running.token());
    let body = r##"{"view":"#/overview","text":"mine"}"##;
    let json = ("content-type", "application/json");
    for (headers, status) in [
        (vec![json, ("sec-fetch-site", "cross-site")], 403),
        (vec![json, ("origin", "http://evil.example")], 403),
        (vec![("content-type", "text/plain")], 400),
        (vec![json], 200),
    ] {
        let (got, answer) = request(&running, "POST", &path, &headers, body);
        assert_eq!(got, status, "{headers:?}: {answer}");
    }
    let notes = std::fs::read_to_string(dir.path().join("not-a-dump.hprof.notes.jsonl")).unwrap();
    assert_eq!(notes.lines().count(), 1, "{notes}");
    running.stop();
    running.wait();
}

#[test]
fn a_file_that_is_no_dump_is_a_fault_in_words() {
    let (_dir, running) = a_server();
    let state = format!("/{}/api/v1/state", running.token());
    testkit::until(|| {
        let printed = ask(&running, &state, &[]).1;
        printed.contains("\"failed\"").then_some(()).ok_or(printed)
    });
    let (status, answer) = ask(
        &running,
        &format!("/{}/api/v1/overview", running.token()),
        &[],
    );
    assert_eq!(status, 500, "{answer}");
    assert!(answer.contains("\"kind\": \"failed\""), "{answer}");
    running.stop();
    running.wait();
}

#[test]
fn the_server_ends_although_a_page_is_listening() {
    let (_dir, running) = a_server();
    let mut page = TcpStream::connect(running.address()).unwrap();
    let text = format!(
        "GET /{}/api/v1/events HTTP/1.1\r\nhost: {}\r\n\r\n",
        running.token(),
        running.address()
    );
    page.write_all(text.as_bytes()).unwrap();
    let mut first = [0u8; 4096];
    let n = page.read(&mut first).unwrap();
    assert!(String::from_utf8_lossy(&first[..n]).contains("text/event-stream"));
    // Another client connects and sends nothing.
    let _silent = TcpStream::connect(running.address()).unwrap();
    // A server that waits for its clients never ends, and with it the test.
    running.stop();
    running.wait();
}
