//! Server-sent events: the current state at once, then every change, until the page disconnects or the server ends. A
//! slow page may miss intermediate states, never the last one.

use crate::reply::json_bytes;
use crate::stop::Stop;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

/// The interval of comments that are sent while nothing happens, so that both sides detect a broken connection.
const BEAT: Duration = Duration::from_secs(15);

/// No page needs more than ten states a second.
const PACE: Duration = Duration::from_millis(100);

/// Follows a value: an event of type `name` with the value as JSON for each change.
pub fn follow<T>(name: &'static str, values: watch::Receiver<T>, stop: Stop) -> Response
where
    T: Serialize + Clone + Send + Sync + 'static,
{
    let state = (values, stop, true);
    let events = stream::unfold(state, move |(mut values, mut stop, first)| async move {
        if !first {
            tokio::select! {
                () = stop.stopped() => return None,
                beat = tokio::time::timeout(BEAT, values.changed()) => match beat {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return None,
                    Err(_) => {
                        let beat = ": still here\n\n".as_bytes().to_vec();
                        return Some((Ok::<_, Infallible>(beat), (values, stop, false)));
                    }
                },
            }
            tokio::time::sleep(PACE).await;
        }
        let value = values.borrow_and_update().clone();
        let text = event(name, &value);
        Some((Ok(text), (values, stop, false)))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream")];
    (headers, Body::from_stream(events)).into_response()
}

/// One event as text.
fn event(name: &str, value: &impl Serialize) -> Vec<u8> {
    let text = String::from_utf8(json_bytes(value)).unwrap_or_default();
    let mut out = format!("event: {name}\n");
    for line in text.lines() {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_its_name_and_its_lines() {
        let text = String::from_utf8(event("state", &[1, 2])).unwrap();
        assert_eq!(
            text,
            "event: state\ndata: [\ndata:  1,\ndata:  2\ndata: ]\n\n"
        );
    }
}
