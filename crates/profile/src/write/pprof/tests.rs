use super::super::tests::profile;
use super::*;
use std::io::Read;
use testkit::pprof::Decoded;

#[test]
fn every_stack_and_value_comes_back() {
    let profile = profile();
    let metrics = profile.metrics();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&write(&profile, &metrics)[..])
        .read_to_end(&mut plain)
        .expect("gzip");
    let decoded = Decoded::of(&plain);
    assert_eq!(decoded.types.len(), metrics.len());
    assert_eq!(decoded.types[0], "samples/count");
    let mut totals = vec![0; metrics.len()];
    let mut hot = None;
    for sample in &decoded.samples {
        assert_eq!(sample.values.len(), metrics.len());
        totals
            .iter_mut()
            .zip(&sample.values)
            .for_each(|(total, value)| *total += value);
        if let Some((name, line)) = sample.frames.first()
            && name == "demo.Cpu.hot"
        {
            hot = Some((sample.frames.len(), *line, sample.values[0]));
        }
    }
    assert_eq!(hot, Some((2, 3, 9)));
    for (metric, total) in metrics.iter().zip(totals) {
        let sum: u64 = profile.stacks(*metric).map(|stack| stack.value).sum();
        assert_eq!(total, sum, "{metric:?}");
    }
}

#[test]
fn the_interval_and_the_notes_are_in_the_profile() {
    let profile = super::super::tests::remarked();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&write(&profile, &profile.metrics())[..])
        .read_to_end(&mut plain)
        .expect("gzip");
    let decoded = Decoded::of(&plain);
    assert_eq!(decoded.period, 2_500_000);
    assert_eq!(decoded.comments, ["3 lost: samples"]);
}

#[test]
fn the_same_profile_gives_the_same_bytes() {
    let profile = profile();
    let metrics = profile.metrics();
    assert_eq!(write(&profile, &metrics), write(&profile, &metrics));
}
