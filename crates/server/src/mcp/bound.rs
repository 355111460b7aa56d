//! Limits the size of answers: long texts are shortened, and half of the longest list is omitted until the answer
//! fits. `truncated` reports what was omitted.

use serde_json::{Value as Json, json};

/// Longest text in an answer, in characters.
const LONGEST_TEXT: usize = 600;

/// Longest answer, in bytes of JSON.
const LONGEST_ANSWER: usize = 48 << 10;

/// The most shortened texts that are named.
const MOST_TEXTS: usize = 20;

/// The answer, shortened if necessary.
pub(super) fn bounded(mut answer: Json) -> Json {
    let (mut cut, mut texts) = (Vec::new(), Vec::new());
    shorten(&mut answer, "", &mut texts);
    // Each round halves a list, so there are few.
    while answer.to_string().len() > LONGEST_ANSWER {
        let Some(pointer) = longest(&answer) else {
            break;
        };
        let Some(Json::Array(list)) = answer.pointer_mut(&pointer) else {
            break;
        };
        let length = list.len();
        list.truncate(length / 2);
        if !cut.iter().any(|c: &(String, usize)| c.0 == pointer) {
            cut.push((pointer, length));
        }
    }
    // Those in omitted rows are not in the answer.
    texts.retain(|(place, _)| answer.pointer(place).is_some());
    let more = texts.len().saturating_sub(MOST_TEXTS);
    texts.truncate(MOST_TEXTS);
    let word = |(place, length): &(String, usize)| format!("{place}: {length} in all");
    let mut words: Vec<String> = texts.iter().map(word).collect();
    if more > 0 {
        words.push(format!("{more} more texts"));
    }
    words.extend(cut.iter().map(word));
    if let (false, Json::Object(fields)) = (words.is_empty(), &mut answer) {
        fields.insert("truncated".to_owned(), json!(words));
    }
    answer
}

fn shorten(value: &mut Json, place: &str, cut: &mut Vec<(String, usize)>) {
    match value {
        Json::String(text) => {
            let length = text.chars().count();
            if length > LONGEST_TEXT {
                let head: String = text.chars().take(LONGEST_TEXT).collect();
                *text = format!("{head}…");
                cut.push((place.to_owned(), length));
            }
        }
        Json::Array(list) => {
            for (n, item) in list.iter_mut().enumerate() {
                shorten(item, &format!("{place}/{n}"), cut);
            }
        }
        Json::Object(fields) => {
            for (name, item) in fields.iter_mut() {
                let name = name.replace('~', "~0").replace('/', "~1");
                shorten(item, &format!("{place}/{name}"), cut);
            }
        }
        _ => {}
    }
}

/// The largest list whose halving helps.
fn longest(value: &Json) -> Option<String> {
    let mut best = (0, None);
    look(value, String::new(), &mut best);
    best.1
}

fn look(value: &Json, place: String, best: &mut (usize, Option<String>)) {
    match value {
        Json::Array(list) => {
            let size = value.to_string().len();
            // For a list with one long item, the item is shortened instead.
            if list.len() > 1 && size > best.0 {
                *best = (size, Some(place.clone()));
            }
            if list.len() == 1 {
                look(&list[0], format!("{place}/0"), best);
            }
        }
        Json::Object(fields) => {
            for (name, item) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                look(item, format!("{place}/{name}"), best);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut_and_says_so() {
        let short = json!({ "rows": [1, 2], "a": "b" });
        assert_eq!(bounded(short.clone()), short);
        let rows: Vec<Json> = (0..4000)
            .map(|n| json!({ "name": "x".repeat(50), "n": n }))
            .collect();
        let answer = bounded(json!({ "rows": rows, "other": [1, 2, 3], "text": "y".repeat(700) }));
        assert!(answer.to_string().len() <= LONGEST_ANSWER + 200);
        assert_eq!(answer["rows"].as_array().unwrap().len(), 500);
        assert_eq!(answer["other"], json!([1, 2, 3]));
        assert_eq!(
            answer["text"].as_str().unwrap().chars().count(),
            LONGEST_TEXT + 1
        );
        let cut = json!(["/text: 700 in all", "/rows: 4000 in all"]);
        assert_eq!(answer["truncated"], cut);
    }

    #[test]
    fn what_was_cut_is_named_in_few_words_and_only_if_it_is_there() {
        let row = |_| json!(["y".repeat(700), "z".repeat(700)]);
        let rows: Vec<Json> = (0..1000).map(row).collect();
        let answer = bounded(json!({ "rows": rows }));
        assert!(answer.to_string().len() <= LONGEST_ANSWER + 2000);
        let left = answer["rows"].as_array().unwrap().len();
        let words = answer["truncated"].as_array().unwrap();
        assert_eq!(words.len(), MOST_TEXTS + 2);
        assert_eq!(words[0], "/rows/0/0: 700 in all");
        let more = format!("{} more texts", 2 * left - MOST_TEXTS);
        assert_eq!(words[MOST_TEXTS], json!(more));
        assert_eq!(words[MOST_TEXTS + 1], "/rows: 1000 in all");
        let one = bounded(json!({ "rows": ["y".repeat(700)] }));
        assert_eq!(one["truncated"], json!(["/rows/0: 700 in all"]));
    }

    #[test]
    fn what_cannot_be_halved_is_left() {
        let wide: serde_json::Map<String, Json> = (0..2000)
            .map(|n| (n.to_string(), json!("z".repeat(60))))
            .collect();
        let answer = bounded(Json::Object(wide));
        assert!(answer.get("truncated").is_none());
    }
}
