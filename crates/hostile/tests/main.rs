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
    profile: 100 / 1,
    dump: 40 / 2,
    commands: 3 / 12,
    events: 100 / 1,
    index: 10 / 1,
    query: 40 / 1,
}

/// As the long run does it (`./x mutants`), without its limits. The largest shapes come first there.
#[test]
fn mutants_come_through_every_analysis() {
    let trial = hostile::trial::Trial::new(3);
    let first = hostile::mutate::shapes::LARGEST.len() as u64;
    let mut taken = std::collections::BTreeMap::new();
    for number in first..first + 150 {
        let (_, how) = trial.run(number);
        *taken.entry(how).or_insert(0u64) += 1;
    }
    assert!(taken.len() >= 3, "not every end is met: {taken:?}");
}

#[test]
fn a_number_is_always_the_same_mutant() {
    let [one, two] = [4, 4].map(hostile::trial::Trial::new);
    for number in 20..60 {
        let data = |trial: &hostile::trial::Trial| trial.mutant(number).map(|m| m.data);
        assert_eq!(data(&one), data(&two), "{number}");
    }
}
