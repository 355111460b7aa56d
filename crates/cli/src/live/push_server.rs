//! The server that profiles are pushed to: its address, the certificates that it needs, and further headers.

use crate::exit::Usage;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the server may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(3);
/// Bytes of the body of a refusal that are read for the message.
const MOST_OF_ANSWER: u64 = 1 << 10;
/// Where systems store the certificates of trusted authorities.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Flags of the server.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// With --push: the file of the certificate authorities to trust (PEM) [default: those of the
    /// system]
    #[arg(long, value_name = "FILE", requires = "push", value_hint = clap::ValueHint::FilePath)]
    pub(super) push_ca: Option<PathBuf>,
    /// With --push: the tenant (the header X-Scope-OrgID)
    #[arg(long, value_name = "ID", requires = "push")]
    pub(super) push_tenant: Option<String>,
    /// With --push: a file with further headers, one per line (NAME: VALUE), for instance
    /// Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE", requires = "push", value_hint = clap::ValueHint::FilePath)]
    pub(super) push_headers: Option<PathBuf>,
}

/// A request that is to be sent.
pub(super) struct Request {
    /// Path, and parameters of the query.
    pub(super) path: &'static str,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) kind: &'static str,
    pub(super) is_packed: bool,
    pub(super) body: Vec<u8>,
}

/// A server.
pub(super) struct Server {
    client: ureq::Agent,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Server {
    /// The one that the flags name.
    ///
    /// # Errors
    /// The address, the certificates or the file of headers are wrong.
    pub(super) fn new(url: &str, args: &ServerArgs) -> Result<Self> {
        if let Some(why) = wrong_address(url) {
            return Err(Usage(format!("{}: {why}", plain(url))).into());
        }
        let mut headers = Vec::new();
        if let Some(tenant) = &args.push_tenant {
            let value = HeaderValue::from_str(tenant).context("--push-tenant")?;
            headers.push((HeaderName::from_static("x-scope-orgid"), value));
        }
        if let Some(path) = &args.push_headers {
            headers.extend(headers_of(path)?);
        }
        Ok(Self {
            client: client(url, args.push_ca.as_deref())?,
            url: url.trim_end_matches('/').to_owned(),
            headers,
        })
    }

    /// The address in messages.
    pub(super) fn shown(&self) -> String {
        shown(&self.url)
    }

    /// Sends a request once. Returns the status, and the first line of a refusal.
    pub(super) fn send(&self, request: &Request) -> Result<(StatusCode, String), ureq::Error> {
        let mut out = self
            .client
            .post(format!("{}{}", self.url, request.path))
            .header("Content-Type", request.kind);
        for (key, value) in &request.query {
            out = out.query(key, value);
        }
        if request.is_packed {
            out = out.header("Content-Encoding", "gzip");
        }
        for (name, value) in &self.headers {
            out = out.header(name, value);
        }
        let mut answer = out.send(&request.body)?;
        let status = answer.status();
        let mut body = Vec::new();
        if !status.is_success() {
            let mut start = answer.body_mut().as_reader().take(MOST_OF_ANSWER);
            // What cannot be read is left out of the message.
            drop(start.read_to_end(&mut body));
        }
        Ok((status, first_words(&String::from_utf8_lossy(&body))))
    }
}

fn client(url: &str, authorities_file: Option<&Path>) -> Result<ureq::Agent> {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    let config = config.timeout_connect(Some(CONNECTING));
    // Another server must not receive the headers, and a redirected POST becomes a GET.
    let config = config.max_redirects(0);
    let mut config = config.http_status_as_error(false);
    if url.starts_with("https://") {
        let roots = RootCerts::from(authorities(authorities_file)?);
        config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
    }
    Ok(config.build().new_agent())
}

/// The headers of a file.
fn headers_of(path: &Path) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let headers = lines.map(|(index, line)| {
        header(line).ok_or_else(|| {
            let place = format!("{}, line {}", path.display(), index + 1);
            Usage(format!("{place}: expected a header (NAME: VALUE)")).into()
        })
    });
    headers.collect()
}

/// The certificates of trusted authorities.
fn authorities(file: Option<&Path>) -> Result<Vec<Certificate<'static>>> {
    let of_environment = || std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let of_system = || {
        AUTHORITIES
            .map(PathBuf::from)
            .into_iter()
            .find(|file| file.is_file())
    };
    let file = file
        .map(Path::to_owned)
        .or_else(of_environment)
        .or_else(of_system);
    let Some(file) = file else {
        let text = "the system has no file of certificate authorities: --push-ca FILE names one";
        return Err(Usage(text.to_owned()).into());
    };
    let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
    let items = parse_pem(&bytes).filter_map(Result::ok);
    let found: Vec<_> = items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        bail!("{}: no certificates (PEM)", file.display());
    }
    Ok(found)
}

/// A header of a line. Its value is not in messages, because it may be secret.
fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

/// Why an address is not that of a server.
fn wrong_address(url: &str) -> Option<&'static str> {
    let known = ["http://", "https://"];
    let Some(rest) = known.iter().find_map(|scheme| url.strip_prefix(scheme)) else {
        return Some("the address of a server begins with http:// or https://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The colons of an address in brackets (IPv6) are no ends of it.
    let (name, port) = match host
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'))
    {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    if host.contains('@') {
        return Some(
            "a user and password do not belong in the address: --push-headers FILE adds Authorization: Basic ...",
        );
    }
    if rest.contains(['?', '#']) {
        return Some("the address of a server has no query (?) and no fragment (#)");
    }
    match (name, port.map(str::parse::<u16>)) {
        ("", _) => Some("the address has no host"),
        (_, Some(Err(_))) => Some("the port is no number from 0 to 65535"),
        _ => None,
    }
}

/// The first words of the body of an answer, for messages.
fn first_words(body: &str) -> String {
    const MOST: usize = 200;
    let line = body.lines().find(|line| !line.trim().is_empty());
    let letters = line.unwrap_or_default().trim().chars().take(MOST);
    letters
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// An address without user, password, query and fragment, which may be secret.
fn plain(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_whole = |host: &str| {
        let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        port.is_none_or(|port| port.is_ok())
    };
    match (host.rsplit_once('@'), path.rsplit_once('@')) {
        (Some((_, host)), _) => format!("{scheme}{host}{path}"),
        // A password with a slash in it.
        (None, Some((_, rest))) if !is_whole(host) => format!("{scheme}{rest}"),
        _ => format!("{scheme}{host}{path}"),
    }
}

/// An address in messages: with its port, even if that is the default.
fn shown(url: &str) -> String {
    let url = plain(url);
    let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
    let host = rest.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match (port, scheme) {
        (Some(Ok(_)), _) => url,
        (_, "https") => format!("{url} (port 443)"),
        _ => format!("{url} (port 80)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    const NO_ARGS: ServerArgs = ServerArgs {
        push_ca: None,
        push_tenant: None,
        push_headers: None,
    };

    #[test]
    fn a_redirect_is_a_refusal_and_is_not_followed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let place = format!("{url}/elsewhere");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut lines = BufReader::new(&stream).lines();
            while lines
                .next()
                .is_some_and(|line| !line.expect("text").is_empty())
            {}
            let answer = format!(
                "HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).expect("answered");
        });
        let client = Server::new(&url, &NO_ARGS).expect("a server");
        let request = Request {
            path: "/ingest",
            query: Vec::new(),
            kind: "text/plain",
            is_packed: false,
            body: Vec::new(),
        };
        let (status, _) = client.send(&request).expect("an answer");
        assert_eq!(status, StatusCode::FOUND);
        server.join().expect("one request");
    }

    #[test]
    fn messages_show_the_port() {
        for url in ["http://a:4040", "https://a:4040/b", "http://[::1]:9"] {
            assert_eq!(shown(url), url);
        }
        for (url, port) in [
            ("http://a", 80),
            ("https://a/b:9", 443),
            ("http://[::1]", 80),
        ] {
            assert_eq!(shown(url), format!("{url} (port {port})"));
        }
        // What may be secret is not shown.
        for url in [
            "http://me:secret@a:9/b",
            "http://a:9/b?key=secret",
            "http://me:p@secret@a:9/b#secret",
        ] {
            assert_eq!(shown(url), "http://a:9/b", "{url}");
        }
    }

    #[test]
    fn an_address_has_a_host_and_a_port_that_is_a_number() {
        for good in [
            "http://a",
            "https://a:4040/b:d@e",
            "http://[::1]",
            "http://[::1]:9",
        ] {
            assert_eq!(wrong_address(good), None, "{good}");
        }
        for wrong in [
            "a:4040",
            "ftp://a",
            "http://",
            "http:///b",
            "http://:80",
            "http://a:x",
            "http://a:70000",
            "http://a:",
            "http://me:secret@a",
            "http://a/b?key=secret",
            "http://a#secret",
            "http://me:a/secret@a",
        ] {
            assert!(wrong_address(wrong).is_some(), "{wrong}");
            let error = Server::new(wrong, &NO_ARGS).err().expect(wrong);
            assert!(error.is::<Usage>(), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_answer_is_shown_as_one_line() {
        assert_eq!(first_words("\n  no such\ttenant \nmore"), "no such tenant");
        assert_eq!(first_words(&"x".repeat(1000)).len(), 200);
        assert_eq!(first_words(""), "");
    }

    #[test]
    fn headers_are_the_lines_of_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("headers");
        std::fs::write(&path, "Authorization: Bearer a:b\n\nX-Scope-OrgID:t1\n").expect("written");
        let found = headers_of(&path).expect("headers");
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().expect("text")))
            .collect();
        assert_eq!(
            found,
            [("authorization", "Bearer a:b"), ("x-scope-orgid", "t1")]
        );
        std::fs::write(&path, "Authorization: a\nsecret\n").expect("written");
        let error = headers_of(&path).expect_err("no header").to_string();
        assert!(
            error.contains("line 2") && !error.contains("secret"),
            "{error}"
        );
        std::fs::write(&path, "a b: c\n").expect("written");
        assert!(headers_of(&path).is_err());
    }
}
