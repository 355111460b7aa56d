//! The option grammar against every command line of the oracle.

use agent_core::options::{ERROR_PREFIX, OptionError, Parsed, Target, help, parse};
use testkit::oracle::cases;

/// The text between the prefix and ` [file.c:line]` of the first error line about options.
fn original_error(stderr: &str) -> Option<&str> {
    let line = stderr
        .lines()
        .find(|line| line.contains("hprof option error"))?;
    let line = line.strip_prefix(ERROR_PREFIX)?;
    Some(&line[..line.rfind(" [")?])
}

#[test]
fn every_command_line_is_accepted_or_refused_as_by_the_original() {
    let mut refused = 0;
    for case in cases().iter().filter(|case| !case.options.is_empty()) {
        let name = &case.name;
        let stderr = case.text("stderr");
        let ours = parse(&case.options[0], case.environment.as_deref());
        match (original_error(&stderr), ours) {
            (Some(text), Err(error)) => {
                assert_eq!(error.to_string(), text, "{name}");
                assert_eq!(case.exit, i64::from(OptionError::EXIT_CODE), "{name}");
                refused += 1;
            }
            (None, Ok(_)) => {}
            (text, ours) => panic!("{name}: original {text:?}, ours {ours:?}"),
        }
    }
    assert!(
        refused == 0 || refused > 20,
        "only {refused} refusals compared"
    );
}

#[test]
fn help_begins_with_the_originals_text() {
    for case in cases().iter().filter(|case| case.name == "err-help") {
        assert_eq!(parse(&case.options[0], None), Ok(Parsed::Help));
        let original = case.text("stdout");
        assert!(original.len() > 1000);
        assert_eq!(&help()[..original.len()], original);
    }
}

#[test]
fn the_output_file_has_the_originals_name() {
    let mut compared = 0;
    for case in cases()
        .iter()
        .filter(|case| case.exit == 0 && !case.name.starts_with("err-"))
    {
        let Ok(Parsed::Run(options)) = parse(&case.options[0], case.environment.as_deref()) else {
            continue;
        };
        let Target::File(_) = options.output.target else {
            continue;
        };
        let files = case.files();
        // The process id of the run is the number in the file's own name.
        let number = |name: &String| name.split('.').find_map(|part| part.parse::<u32>().ok());
        let pid = files.iter().find_map(number).unwrap_or(1);
        // A case about an existing file left that file in place, 13 bytes long.
        let existing = |name: &str| case.file(name).is_some_and(|bytes| bytes.len() == 13);
        let ours = options.output_file(pid, existing).expect("a file");
        assert!(
            files.contains(&ours),
            "{}: {ours} is not among {files:?}",
            case.name
        );
        compared += 1;
    }
    assert!(
        compared == 0 || compared > 60,
        "only {compared} names compared"
    );
}
