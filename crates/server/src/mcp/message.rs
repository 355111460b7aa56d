//! Messages: JSON-RPC 2.0 as the Model Context Protocol uses it. Since revision 2026-07-28, every request has its
//! version; in older revisions only `initialize` has it. Both are supported.

use serde_json::{Value as Json, json};

/// The revision in which every request has its version.
const MODERN: &str = "2026-07-28";

/// The revisions that begin with `initialize`, the newest first. (2025-03-26 is not supported, because it requires
/// batches.)
const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2024-11-05"];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may cache a list of tools, in milliseconds; it does not change while the program runs.
const FRESH: u64 = 3_600_000;

/// The content of a line.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A request to be answered.
    Request(Request),
    /// A call that no one waits for any more.
    Cancelled(Json),
    /// Nothing to do.
    Nothing,
    /// Not a message: the id for the response, if it could be read, and the reason.
    Wrong(Json, Fault),
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// Its id: a number or a text.
    pub(super) id: Json,
    pub(super) method: String,
    /// Its parameters, an object.
    pub(super) params: Json,
}

/// The group of revisions that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
}

impl Era {
    /// A result with the fields that every result of the era has.
    pub(super) fn complete(self, mut result: Json) -> Json {
        let Json::Object(fields) = &mut result else {
            return result;
        };
        if self == Era::Modern {
            fields.insert("resultType".to_owned(), json!("complete"));
            fields.insert("_meta".to_owned(), json!({ SERVER_KEY: server() }));
        } else {
            fields.remove("ttlMs");
            fields.remove("cacheScope");
        }
        result
    }
}

/// A JSON-RPC error.
#[derive(Debug)]
pub(super) struct Fault {
    code: i64,
    message: String,
    data: Option<Json>,
}

impl Fault {
    fn new(code: i64, message: impl Into<String>) -> Fault {
        Fault {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Parameters are missing or invalid.
    pub(super) fn params(message: impl Into<String>) -> Fault {
        Fault::new(-32602, message)
    }

    /// The request is invalid.
    pub(super) fn request(message: impl Into<String>) -> Fault {
        Fault::new(-32600, message)
    }

    /// A line is longer than this number of bytes.
    pub(super) fn long(most: u64) -> Fault {
        Fault::request(format!("a message may have at most {most} bytes"))
    }

    pub(super) fn unknown(method: &str) -> Fault {
        Fault::new(-32601, format!("unknown method: {}", short(method)))
    }

    pub(super) fn no_resource(uri: &str) -> Fault {
        Fault::new(-32002, format!("no such resource: {}", short(uri)))
    }

    /// A resource could not be created.
    pub(super) fn failed(message: impl Into<String>) -> Fault {
        Fault::new(-32603, message)
    }

    pub(super) fn internal() -> Fault {
        Fault::new(-32603, "the answer could not be made; this is a bug")
    }

    pub(super) fn busy(most: usize) -> Fault {
        Fault::new(
            -32603,
            format!("{most} calls are being answered; wait for one"),
        )
    }

    fn version(requested: &str) -> Fault {
        Fault {
            data: Some(json!({ "supported": versions(), "requested": short(requested) })),
            ..Fault::new(-32022, "Unsupported protocol version")
        }
    }

    /// The fault as a message.
    pub(super) fn response(&self, id: &Json) -> Json {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Some(data), Json::Object(fields)) = (&self.data, &mut error) {
            fields.insert("data".to_owned(), data.clone());
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// A text from the client, shortened for a message to it.
pub(super) fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

fn versions() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(LEGACY).collect()
}

fn server() -> Json {
    json!({ "name": "tenure", "title": "Tenure", "version": env!("CARGO_PKG_VERSION") })
}

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Incoming {
    let wrong = |fault| Incoming::Wrong(Json::Null, fault);
    let mut message = match serde_json::from_slice(line) {
        Ok(Json::Object(message)) => message,
        Ok(Json::Array(_)) => return wrong(Fault::request("batches are not supported")),
        Ok(_) => return wrong(Fault::request("expected an object")),
        Err(error) => return wrong(Fault::new(-32700, format!("not JSON: {error}"))),
    };
    let id = message.remove("id");
    let method = match message.remove("method") {
        Some(Json::String(method)) => method,
        // A response: Tenure has sent no request.
        None if message.contains_key("result") || message.contains_key("error") => {
            return Incoming::Nothing;
        }
        _ => {
            let id = id.unwrap_or_default();
            return Incoming::Wrong(id, Fault::request("method is missing"));
        }
    };
    let params = message.remove("params").unwrap_or_else(|| json!({}));
    let Some(id) = id else {
        let cancelled = method == "notifications/cancelled";
        return match params.get("requestId") {
            Some(id) if cancelled => Incoming::Cancelled(id.clone()),
            _ => Incoming::Nothing,
        };
    };
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Incoming::Wrong(id, Fault::request("jsonrpc: expected \"2.0\""));
    }
    if !(id.is_string() || id.is_i64() || id.is_u64()) {
        return wrong(Fault::request("id: expected a text or a whole number"));
    }
    if !params.is_object() {
        return Incoming::Wrong(id, Fault::params("params: expected an object"));
    }
    Incoming::Request(Request { id, method, params })
}

impl Request {
    /// The era of a request; `introduced` is true after `initialize`.
    pub(super) fn era(&self, introduced: bool) -> Result<Era, Fault> {
        let meta = self.params.get("_meta");
        let version = meta.and_then(|m| m.get(VERSION_KEY));
        match version {
            Some(Json::String(version)) if version == MODERN => {
                let capabilities = meta.and_then(|m| m.get(CAPABILITIES_KEY));
                match capabilities.is_some_and(Json::is_object) {
                    true => Ok(Era::Modern),
                    false => Err(Fault::params(format!("_meta lacks {CAPABILITIES_KEY}"))),
                }
            }
            Some(Json::String(version)) if LEGACY.contains(&version.as_str()) => Ok(Era::Legacy),
            Some(Json::String(version)) => Err(Fault::version(version)),
            Some(_) => Err(Fault::params(format!("{VERSION_KEY}: expected a text"))),
            None if introduced || matches!(self.method.as_str(), "initialize" | "ping") => {
                Ok(Era::Legacy)
            }
            None => Err(Fault::params(format!(
                "send initialize first, or name the protocol version in _meta ({VERSION_KEY}): {}",
                versions().join(", ")
            ))),
        }
    }
}

/// The answer to `initialize`.
pub(super) fn introduction(params: &Json, instructions: &str) -> Json {
    let asked = params.get("protocolVersion").and_then(Json::as_str);
    let version = LEGACY.into_iter().find(|v| Some(*v) == asked);
    json!({
        "protocolVersion": version.unwrap_or(LEGACY[0]),
        "capabilities": { "tools": {}, "resources": {} },
        "serverInfo": server(),
        "instructions": instructions,
    })
}

/// The answer to `server/discover`.
pub(super) fn discovery(instructions: &str) -> Json {
    json!({
        "supportedVersions": versions(),
        "capabilities": { "tools": {}, "resources": {} },
        "instructions": instructions,
        "ttlMs": FRESH,
        "cacheScope": "private",
    })
}

/// A list with this name that does not change, and how long a client may cache it.
pub(super) fn fresh(name: &str, items: Vec<Json>) -> Json {
    json!({ name: items, "ttlMs": FRESH, "cacheScope": "private" })
}

/// A list with this name that may change at any time.
pub(super) fn passing(name: &str, items: Vec<Json>) -> Json {
    json!({ name: items, "ttlMs": 0, "cacheScope": "private" })
}

/// A fault as text for a model, with the position in a query.
pub(super) fn fault_text(fault: &requests::Fault) -> String {
    match &fault.place {
        None => fault.message.clone(),
        Some(place) => {
            let mark = " ".repeat(place.column.saturating_sub(1));
            format!("{}\n{}\n{mark}^", fault.message, place.text)
        }
    }
}
