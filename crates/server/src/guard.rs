//! Access control: a request needs the token and a loopback name as its host (a page of another site that resolves its
//! own name to 127.0.0.1 has another host), and may come only from a page of Tenure.

use crate::reply::{Refused, method_not_allowed};
use crate::stop::Stop;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use requests::Fault;
use std::sync::Arc;
use tower::ServiceExt;

/// What a browser may do with Tenure's pages: run the modules of this server, no inline scripts, nothing from other
/// sites.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'";

/// The port of addresses that name none.
const HTTP: u16 = 80;

/// Checks requests to a site.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    token: Arc<str>,
    hosts: Arc<[String]>,
    stop: Stop,
}

impl Gate {
    pub(crate) fn new(token: &str, port: u16, stop: Stop) -> Gate {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let mut hosts = names.map(|name| format!("{name}:{port}")).to_vec();
        if port == HTTP {
            // Browsers leave it out.
            hosts.extend(names.map(str::to_owned));
        }
        Gate {
            token: token.into(),
            hosts: hosts.into(),
            stop,
        }
    }

    fn check(&self, request: &Request) -> Result<(), Fault> {
        let text = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok());
        let host = text("host").unwrap_or_default();
        if !self.hosts.iter().any(|h| h == host) {
            return Err(Fault::forbidden("this host name is not that of the page"));
        }
        if let Some(origin) = request.headers().get(header::ORIGIN) {
            let ours = origin
                .to_str()
                .ok()
                .and_then(|o| o.strip_prefix("http://"))
                .is_some_and(|o| o == host);
            if !ours {
                return Err(Fault::forbidden("the request comes from another site"));
            }
        }
        if matches!(text("sec-fetch-site"), Some("cross-site" | "same-site"))
            && *request.method() != Method::GET
        {
            return Err(Fault::forbidden("the request comes from another site"));
        }
        Ok(())
    }

    /// The path after the token, or `None` when the token is wrong.
    fn inside<'r>(&self, path: &'r str) -> Option<&'r str> {
        let rest = path.strip_prefix('/')?;
        let (token, inside) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at..]),
            None => (rest, ""),
        };
        same(token.as_bytes(), self.token.as_bytes()).then_some(inside)
    }
}

/// Whether a path is UTF-8 after its escapes are decoded.
fn is_text(path: &str) -> bool {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// Compares in a time that does not depend on the position of the first difference.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

/// Passes a permitted request to the site, without the token in its path, and adds headers to the response that
/// restrict what a browser may do with it.
pub(crate) async fn gate(gate: &Gate, site: Router, request: Request) -> Response {
    let mut response = match enter(gate, site, request).await {
        Ok(response) => response,
        Err(fault) => {
            let mut refused = Refused(fault).into_response();
            // A connection is not kept for who has no token.
            let close = HeaderValue::from_static("close");
            refused.headers_mut().insert(header::CONNECTION, close);
            refused
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        // With `no-referrer`, forms on Tenure's own pages would have `Origin: null`.
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
    response
}

async fn enter(gate: &Gate, site: Router, mut request: Request) -> Result<Response, Fault> {
    gate.check(&request)?;
    let Some(inside) = gate.inside(request.uri().path()) else {
        return Err(Fault::forbidden(
            "the token in the address is missing or wrong",
        ));
    };
    if inside.is_empty() {
        let to = format!("{}/", request.uri().path());
        return Ok((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]).into_response());
    }
    if !is_text(inside) {
        return Err(Fault::bad("this address is no text in UTF-8"));
    }
    let query = request.uri().query().map(|q| format!("?{q}"));
    let uri: Uri = format!("{inside}{}", query.unwrap_or_default())
        .parse()
        .map_err(|_| Fault::bad("this address cannot be read"))?;
    *request.uri_mut() = uri;
    request.extensions_mut().insert(gate.stop.clone());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    // A router answers everything itself; its error type has no values.
    let Ok(response) = site.oneshot(request).await;
    // It knows the methods of an address, but has no text for the others.
    Ok(match response.headers().get(header::ALLOW) {
        Some(allowed) if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
            method_not_allowed(&method, &path, allowed.clone())
        }
        _ => response,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_may_be_left_out_and_no_other() {
        for (port, host, is_ours) in [
            (80, "127.0.0.1", true),
            (80, "localhost:80", true),
            (80, "evil.example", false),
            (8080, "127.0.0.1", false),
        ] {
            let (_stop, stopping) = tokio::sync::watch::channel(false);
            let gate = Gate::new("token", port, Stop(stopping));
            let mut request = Request::new(axum::body::Body::empty());
            let value = HeaderValue::from_static(host);
            request.headers_mut().insert(header::HOST, value);
            assert_eq!(gate.check(&request).is_ok(), is_ours, "{port} {host}");
        }
    }
}
