//! Answers in the available formats, and faults as JSON.

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use report::{Doc, Provenance, Say, html, json, sheet};
use requests::{Fault, FaultKind};
use serde::Serialize;
use std::path::Path;

/// For pages without JavaScript, whose tables have widths as style attributes.
pub const PLAIN_POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// A fault as the response to a request.
#[derive(Clone, Debug)]
pub struct Refused(pub Fault);

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Refused(fault)
    }
}

impl Refused {
    /// The HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        match self.0.kind {
            FaultKind::BadRequest => StatusCode::BAD_REQUEST,
            FaultKind::Forbidden => StatusCode::FORBIDDEN,
            FaultKind::NotFound => StatusCode::NOT_FOUND,
            FaultKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            FaultKind::NotReady => StatusCode::SERVICE_UNAVAILABLE,
            FaultKind::Later => StatusCode::ACCEPTED,
            FaultKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body<'a> {
            schema: &'static str,
            error: &'a Fault,
        }
        let body = Body {
            schema: "tenure.error/1",
            error: &self.0,
        };
        (self.status(), typed("application/json", json_bytes(&body))).into_response()
    }
}

/// Any value as JSON that is safe to print.
pub fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = json::write_value(&mut out, value);
    out
}

/// Bytes with their media type.
pub fn typed(media: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = bytes.into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// An answer with its HTTP metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its media type.
    pub media: &'static str,
    /// The text.
    pub bytes: Vec<u8>,
    /// The file name for a browser that saves it, if it is a download.
    pub file: Option<String>,
    /// The content security policy, if it differs from that of Tenure's pages.
    pub policy: Option<&'static str>,
}

impl Content {
    /// An answer to be shown.
    pub fn new(media: &'static str, bytes: Vec<u8>) -> Content {
        Content {
            media,
            bytes,
            file: None,
            policy: None,
        }
    }

    /// Any value as JSON.
    pub fn json(value: &impl Serialize) -> Content {
        Content::new("application/json", json_bytes(value))
    }

    /// Makes it a download with the name of this file.
    #[must_use]
    pub fn kept_as(self, file: &Path) -> Content {
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        Content {
            file: Some(file.into_owned()),
            ..self
        }
    }
}

impl IntoResponse for Content {
    fn into_response(self) -> Response {
        let mut response = typed(self.media, self.bytes);
        let headers = response.headers_mut();
        let disposition = self
            .file
            .map(|name| format!("attachment; filename=\"{name}\""));
        if let Some(Ok(value)) = disposition.as_deref().map(HeaderValue::from_str) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
        if let Some(policy) = self.policy {
            let value = HeaderValue::from_static(policy);
            headers.insert(header::CONTENT_SECURITY_POLICY, value);
        }
        response
    }
}

/// The requested format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// JSON, as `tenure COMMAND --json` prints it.
    #[default]
    Json,
    /// The tables of the answer as CSV, sizes in bytes.
    Csv,
    /// A page without JavaScript.
    Plain,
}

/// An answer written in one format.
#[derive(Clone, Debug)]
pub struct Written {
    /// The format.
    pub form: Form,
    /// The text; for [`Form::Plain`] the part of the page below its heading.
    pub bytes: Vec<u8>,
}

impl Written {
    /// Writes an answer.
    pub fn new<T: Say>(form: Form, answer: &T, provenance: &Provenance) -> Written {
        let bytes = match form {
            Form::Json => {
                let mut out = Vec::new();
                // Writing to memory does not fail.
                let _ = json::write(&mut out, answer, provenance);
                out
            }
            Form::Csv => sheet::render(&answer.sheet()).into_bytes(),
            Form::Plain => {
                let doc: Doc = report::say::whole(answer, provenance);
                html::render(&doc, 2).into_bytes()
            }
        };
        Written { form, bytes }
    }

    /// The same, marked as a partial result in its JSON.
    pub(crate) fn partial(mut self) -> Written {
        if self.bytes.first() == Some(&b'{') {
            self.bytes.splice(1..1, *b"\n \"complete\": false,");
        }
        self
    }

    /// The HTTP response; `name` is the file name of a download. For [`Form::Plain`], use [`plain_page`] instead,
    /// which adds the page around it.
    pub fn respond(&self, name: &str) -> Response {
        let bytes = self.bytes.clone();
        match self.form {
            Form::Json => typed("application/json", bytes),
            Form::Plain => plain_page(name, &String::from_utf8_lossy(&bytes), "../"),
            Form::Csv => Content::new("text/csv; charset=utf-8", bytes)
                .kept_as(Path::new(&format!("{name}.csv")))
                .into_response(),
        }
    }
}

/// A page without JavaScript: `body` is HTML whose texts are already escaped.
pub fn plain_page(title: &str, body: &str, up: &str) -> Response {
    let title = report::escape::html(title);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Tenure</title>\n<link rel=\"icon\" href=\"{up}assets/icon.svg\">\n\
         <link rel=\"stylesheet\" href=\"{up}assets/page.css\">\n\
         <link rel=\"stylesheet\" href=\"{up}assets/plain.css\">\n</head>\n<body class=\"plain\">\n\
         <main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    );
    let mut response = typed("text/html; charset=utf-8", page.into_bytes());
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PLAIN_POLICY),
    );
    response
}

/// The answer to a request with a method that the address at `path`, which is behind the token, does not take.
pub(crate) fn method_not_allowed(method: &Method, path: &str, allowed: HeaderValue) -> Response {
    let names = allowed.to_str().unwrap_or_default();
    let fault = Fault::method_not_allowed(method.as_str(), names);
    let mut response = match path.split_once("/plain/") {
        Some((_, view)) => {
            let up = "../".repeat(view.matches('/').count());
            let text = report::escape::html(&fault.message);
            let body =
                format!("<p><a href=\"{up}./\">All views</a></p>\n<p class=\"bad\">{text}.</p>\n");
            let page = plain_page("Not possible", &body, &format!("../{up}"));
            (Refused(fault).status(), page).into_response()
        }
        None => Refused(fault).into_response(),
    };
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

/// Percent-encoding for a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':') {
            out.push(b as char);
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}
