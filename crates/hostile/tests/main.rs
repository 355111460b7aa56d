//! Hostile bytes through every entrance: no panic, and every one comes back.

use hostile::{ENTRANCES, inputs};

/// Sends inputs through an entrance, one of `every` so many. The limit of a test's time is that of
/// a hang.
fn replay(entrance: &str, times: usize, every: usize) {
    let (_, run) = ENTRANCES
        .iter()
        .find(|(name, _)| *name == entrance)
        .expect("an entrance");
    let made = inputs::made(times);
    let suiting = made
        .iter()
        .step_by(every)
        .filter(|(_, bytes)| inputs::suits(entrance, bytes));
    let mut count = 0;
    for (name, bytes) in suiting {
        let came_back = std::panic::catch_unwind(|| run(bytes));
        assert!(
            came_back.is_ok(),
            "{entrance}: {name} of {} bytes",
            bytes.len()
        );
        count += 1;
    }
    assert!(
        count * every >= times,
        "only {count} inputs suit {entrance}"
    );
}

macro_rules! entrances {
    ($($name:ident: $times:literal / $every:literal,)*) => {
        $(#[test] fn $name() { replay(stringify!($name), $times, $every); })*

        #[test]
        fn every_entrance_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            let all: Vec<_> = ENTRANCES.iter().map(|(name, _)| *name).collect();
            assert_eq!(replayed[..], all[..]);
        }
    };
}

entrances! {
    records: 100 / 1,
    segment: 100 / 1,
    source: 100 / 1,
    text: 100 / 1,
    dump: 40 / 2,
    commands: 3 / 12,
    events: 100 / 1,
    index: 10 / 1,
    query: 40 / 1,
}
