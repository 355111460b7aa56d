//! pprof of a running JVM with known costs, read by a decoder of its own: pulled from
//! `/debug/pprof`, and pushed to a server as Pyroscope takes it.

use crate::watched::{PATIENCE, Page, lab, run_live};
use flate2::read::GzDecoder;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use testkit::pprof::Decoded;

/// The sums of both values of the stacks that have a frame like this.
fn sum(profile: &Decoded, frame: &str) -> [u64; 2] {
    profile.sum(frame).try_into().expect("two values")
}

fn unpacked(gzip: &[u8]) -> Decoded {
    let mut bytes = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut bytes).expect("gzip");
    Decoded::of(&bytes)
}

fn get(page: &Page, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(&page.host).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let request = format!(
        "GET {}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        page.base, page.host
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = answer.split_off(end.expect("a head") + 4);
    let head = String::from_utf8_lossy(&answer).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.expect("a status"), body)
}

fn decoded(page: &Page, path: &str) -> Decoded {
    let (status, body) = get(page, path);
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    unpacked(&body)
}

/// The profile of what `work` does.
fn during(page: &Page, name: &str, work: impl FnOnce()) -> Decoded {
    let asked = page.clone();
    let path = format!("debug/pprof/{name}?seconds=600");
    let profile = thread::spawn(move || decoded(&asked, &path));
    page.until("state", |state| state["measuring"] == 1);
    // The agent does one command after the other, so it measures once it has done a later one.
    page.snapshot();
    work();
    page.command("finish");
    profile.join().expect("a profile")
}

#[test]
fn profiles_are_those_of_the_time_that_was_asked_for() {
    let Some(lab) = lab("pprof of a running program") else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut program, page) = run_live(lab, jdk, folder.path(), &[]);
        assert_eq!(get(&page, "debug/pprof/profile?seconds=1").0, 404);
        page.command("record?mode=full");
        page.counting(&mut program);
        for (path, status) in [
            ("debug/pprof/profile?seconds=0", 400),
            ("debug/pprof/heap?seconds=x", 400),
            ("debug/pprof/goroutine", 404),
        ] {
            assert_eq!(get(&page, path).0, status, "{path}");
        }
        // What runs before and after is not in it.
        program.send("burn 300");
        let cpu = during(&page, "profile", || program.send("burn 1000"));
        program.send("burn 300");
        assert_eq!(cpu.types, ["cpu/nanoseconds", "samples/count"]);
        assert_eq!(cpu.period, 10_000_000);
        let [time, samples] = sum(&cpu, "Populations.burn");
        assert_eq!(time, samples * 10_000_000);
        assert!(
            (40..=110).contains(&samples),
            "100 are expected of a second of CPU time on {}: {samples} {cpu:?}",
            jdk.full_version
        );

        let block = during(&page, "block", || program.send("contend 5"));
        assert_eq!(block.types, ["delay/nanoseconds", "contentions/count"]);
        let [delay, count] = sum(&block, "[Populations$Lock]");
        assert_eq!(count, 5, "{block:?} on {}", jdk.full_version);
        assert!(delay >= 500_000_000, "{delay}");
        assert_eq!(sum(&block, "Populations.blocked"), [delay, count]);
        // What is over is over: the next one begins at zero.
        let block = decoded(&page, "debug/pprof/block?seconds=1");
        assert_eq!(sum(&block, "Populations$Lock"), [0, 0], "{block:?}");

        program.send("keep 1234");
        page.snapshot();
        let heap = decoded(&page, "debug/pprof/heap");
        assert_eq!(heap.types, ["inuse_space/bytes", "inuse_objects/count"]);
        assert_eq!(sum(&heap, "[Populations$Node]")[1], 1234);
        let allocs = during(&page, "allocs", || {
            program.send("keep 77");
            program.send("other 600");
        });
        assert_eq!(allocs.types, ["alloc_space/bytes", "alloc_objects/count"]);
        assert_eq!(sum(&allocs, "[Populations$Node]")[1], 77);
        program.child.kill().expect("killed");
    }
}

/// CPU time of `Populations.burn` in a range, in samples.
fn burnt(page: &Page, range: &str) -> u64 {
    let answer = page.json(&format!("cpu?{range}&limit=1000"));
    assert_eq!(answer["schema"], "tenure.profile/1", "{answer}");
    let methods = answer["methods"].as_array().expect("methods");
    let own: u64 = methods
        .iter()
        .map(|row| row["own"].as_u64().expect("a number"))
        .sum();
    assert_eq!(answer["total"], own, "each sample is some method's own");
    let burn = methods
        .iter()
        .find(|row| row["method"] == "Populations.burn");
    burn.map_or(0, |row| row["total"].as_u64().expect("a number")) / 10_000_000
}

#[test]
fn the_cpu_is_sampled_while_a_page_wants_it_and_by_range() {
    let Some(lab) = lab("CPU samples of a live page") else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut program, page) = run_live(lab, jdk, folder.path(), &[]);
        assert_eq!(get(&page, "api/v1/cpu").0, 404);
        // The agent is loaded for this, and records no allocations.
        page.command("cpu?on=1");
        let state = page.json("state");
        assert_eq!(
            (&state["cpu"], &state["recording"]["on"]),
            (&true.into(), &false.into())
        );
        let mut burn = |ms: u32| {
            program.send(&format!("burn {ms}"));
            page.count();
            now_ms()
        };
        let middle = burn(600);
        burn(600);
        let [all, first, second] = ["", &format!("to={middle}"), &format!("from={middle}")]
            .map(|range| burnt(&page, range));
        assert_eq!(first + second, all);
        for one in [first, second] {
            assert!(
                (24..=66).contains(&one),
                "60 are expected of 0.6 s on {}: {one}",
                jdk.full_version
            );
        }
        assert_eq!(burnt(&page, "filter=no.such.Frame"), 0);
        let changed = page.json(&format!("cpu?from={middle}&base_from=0&base_to={middle}"));
        assert_eq!(changed["schema"], "tenure.profile_difference/1");
        let (status, collapsed) = get(
            &page,
            "api/v1/profile?heap=cpu&form=collapsed&filter=Populations.burn",
        );
        let collapsed = String::from_utf8(collapsed).expect("text");
        let sum: u64 = collapsed
            .lines()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum();
        assert_eq!((status, sum), (200, all * 10_000_000), "{collapsed}");

        // A measurement has its own time, and does not end the samples of the page.
        let measured = during(&page, "profile", || {
            burn(600);
        });
        let samples = sum_of(&measured);
        assert!((24..=66).contains(&samples), "{samples}");
        burn(300);
        let more = burnt(&page, "");
        assert!(more > all + samples, "{more} {all} {samples}");
        page.command("cpu?on=0");
        assert_eq!(page.json("state")["cpu"], false);
        let last = burnt(&page, "");
        burn(300);
        assert_eq!(burnt(&page, ""), last);
        program.child.kill().expect("killed");
    }
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a time").as_millis() as u64
}

fn sum_of(profile: &Decoded) -> u64 {
    sum(profile, "Populations.burn")[1]
}

struct Request {
    line: String,
    head: Vec<String>,
    body: Vec<u8>,
}

/// A server that takes everything, by TLS if it has a certificate.
fn receiver(tls: Option<Arc<rustls::ServerConfig>>) -> (u16, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (sender, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            let tls = tls.clone();
            thread::spawn(move || match tls {
                None => serve(stream, &sender),
                Some(tls) => {
                    let session = rustls::ServerConnection::new(tls).expect("a session");
                    serve(rustls::StreamOwned::new(session, stream), &sender);
                }
            });
        }
    });
    (port, requests)
}

/// Takes the requests of a connection.
fn serve(stream: impl Read + Write, sender: &Sender<Request>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut head = Vec::new();
        let mut length = 0;
        loop {
            let mut one = String::new();
            stream.read_line(&mut one).expect("a head");
            let one = one.trim_end().to_lowercase();
            if one.is_empty() {
                break;
            }
            if let Some(number) = one.strip_prefix("content-length:") {
                length = number.trim().parse().expect("a length");
            }
            head.push(one);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        stream.get_mut().write_all(answer).expect("answered");
        stream.get_mut().flush().expect("answered");
        if sender.send(Request { line, head, body }).is_err() {
            return;
        }
    }
}

#[test]
fn profiles_are_sent_to_a_server() {
    let Some(lab) = lab("profiles are sent") else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.tool("javac").is_file()) else {
        return;
    };
    let (port, requests) = receiver(None);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://127.0.0.1:{port}/");
    let headers = folder.path().join("headers");
    std::fs::write(&headers, "Authorization: Bearer t2\n").expect("written");
    let (mut program, page) = run_live(
        lab,
        jdk,
        folder.path(),
        &[
            "--record",
            "full",
            "--push",
            &url,
            "--push-every",
            "2",
            "--push-name",
            "shop{env=test}",
            "--push-tenant",
            "t1",
            "--push-headers",
            headers.to_str().expect("a name"),
        ],
    );
    page.counting(&mut program);
    program.send("keep 1234");
    let mut seen: HashMap<String, u64> = HashMap::new();
    let mut allocated = 0;
    while seen.len() < 4 || allocated < 1234 || seen.values().any(|times| *times < 2) {
        program.send("burn 50");
        let request = requests.recv_timeout(PATIENCE).expect("profiles");
        let line = &request.line;
        assert!(line.starts_with("POST /ingest?"), "{line}");
        for part in [
            "name=shop%7Benv%3Dtest%7D&",
            "&format=pprof&",
            "&from=",
            "&until=",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        for header in ["x-scope-orgid: t1", "authorization: bearer t2"] {
            assert!(request.head.iter().any(|one| one.to_lowercase() == header));
        }
        let profile = unpacked(&request.body);
        *seen.entry(profile.types[0].clone()).or_default() += 1;
        if profile.types[0] == "alloc_space/bytes" {
            // Each allocation is in one of them, and in one only.
            allocated += sum(&profile, "[Populations$Node]")[1];
        }
    }
    assert_eq!(allocated, 1234);
    for kind in ["cpu/nanoseconds", "delay/nanoseconds", "inuse_space/bytes"] {
        assert!(seen.contains_key(kind), "{kind}: {seen:?}");
    }
    program.child.kill().expect("killed");
}

#[test]
fn the_last_interval_is_sent_when_the_program_ends() {
    let Some(lab) = lab("the last profiles are sent") else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.tool("javac").is_file()) else {
        return;
    };
    let (port, requests) = receiver(None);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://127.0.0.1:{port}");
    let arguments = ["--record", "full", "--push", &url, "--push-every", "3600"];
    let (mut program, page) = run_live(lab, jdk, folder.path(), &arguments);
    page.counting(&mut program);
    page.until("state", |state| state["measuring"] == 1);
    page.snapshot();
    for work in ["keep 1234", "burn 400", "contend 2"] {
        program.send(work);
    }
    program.say("exit");
    assert!(program.child.wait().expect("ended").success());
    let mut found = HashMap::new();
    for request in requests.try_iter() {
        let profile = unpacked(&request.body);
        let frame = match &*profile.types[0] {
            "cpu/nanoseconds" => "Populations.burn",
            "delay/nanoseconds" => "[Populations$Lock]",
            _ => "[Populations$Node]",
        };
        *found.entry(profile.types[0].clone()).or_default() += sum(&profile, frame)[1];
    }
    assert_eq!(found.get("alloc_space/bytes"), Some(&1234), "{found:?}");
    assert_eq!(found.get("delay/nanoseconds"), Some(&2), "{found:?}");
    assert!(
        found
            .get("cpu/nanoseconds")
            .is_some_and(|samples| *samples > 5),
        "{found:?}"
    );
}

/// A server of `localhost` with a certificate that only the authority in `tls/authority.pem` vouches for.
fn certified() -> Arc<rustls::ServerConfig> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.expect("PEM")], key.expect("PEM"));
    Arc::new(config.expect("a configuration"))
}

#[test]
fn a_collector_gets_otlp_over_tls_if_its_authority_is_trusted() {
    let Some(lab) = lab("profiles are sent over TLS") else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.tool("javac").is_file()) else {
        return;
    };
    let (port, requests) = receiver(Some(certified()));
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("https://localhost:{port}");
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/authority.pem");
    let (mut program, page) = run_live(
        lab,
        jdk,
        folder.path(),
        &[
            "--record",
            "full",
            "--push",
            &url,
            "--push-protocol",
            "otlp",
            "--push-ca",
            authority,
            "--push-every",
            "1",
            "--push-name",
            "shop{env=test}",
        ],
    );
    page.counting(&mut program);
    program.send("keep 1234");
    // The first interval may end before the program has done anything.
    let text = loop {
        let request = requests.recv_timeout(PATIENCE).expect("profiles");
        let line = request.line.trim_end();
        assert_eq!(line, "POST /v1development/profiles HTTP/1.1");
        for header in [
            "content-type: application/x-protobuf",
            "content-encoding: gzip",
        ] {
            assert!(request.head.iter().any(|one| one == header), "{header}");
        }
        let mut plain = Vec::new();
        let mut packed = GzDecoder::new(&request.body[..]);
        packed.read_to_end(&mut plain).expect("gzip");
        let text = String::from_utf8_lossy(&plain).into_owned();
        if text.contains("Populations") {
            break text;
        }
    };
    for part in ["service.name", "shop", "inuse_space"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    program.child.kill().expect("killed");
}
