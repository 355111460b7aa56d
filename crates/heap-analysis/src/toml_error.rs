//! Errors of the TOML files that a user gives.

/// An error on one line: its position and its message.
pub(crate) fn one_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    match text
        .lines()
        .next()
        .filter(|first| first.contains(" at line "))
    {
        Some(place) => format!("{place}: {message}"),
        None => message,
    }
}
