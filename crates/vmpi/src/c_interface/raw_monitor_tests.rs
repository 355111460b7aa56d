use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

fn silent(_: i32, _: &RawMonitor) {}

fn made(name: &str) -> (RawMonitors, usize) {
    let monitors = RawMonitors::default();
    let id = monitors.create(CString::new(name).unwrap());
    (monitors, id)
}

#[test]
fn only_the_owner_leaves_and_as_often_as_it_entered() {
    let (monitors, id) = made("m");
    monitors.enter(id, 1, &silent);
    monitors.enter(id, 1, &silent);
    monitors.exit(id, 2, &silent);
    monitors.exit(id, 1, &silent);
    let mut seen = Vec::new();
    monitors.used(|usage| seen.push((usage.owner, usage.count)));
    assert_eq!(seen, [(1, 1)]);
    monitors.exit(id, 1, &silent);
    monitors.exit(id, 1, &silent);
    monitors.used(|usage| panic!("still used: {usage:?}"));
}

#[test]
fn contention_is_reported_on_both_sides_but_for_names_with_an_underscore() {
    for (name, expected) in [("m", vec![51, 53, 52]), ("_m", vec![])] {
        let (monitors, id) = made(name);
        let reported = std::sync::Mutex::new(Vec::new());
        let emit = |kind: i32, _: &RawMonitor| reported.lock().unwrap().push(kind);
        monitors.enter(id, 1, &emit);
        thread::scope(|scope| {
            scope.spawn(|| {
                monitors.enter(id, 2, &emit);
                monitors.exit(id, 2, &emit);
            });
            let mut is_blocked = false;
            while !is_blocked {
                monitors.used(|usage| is_blocked = usage.entering == [2]);
                thread::yield_now();
            }
            while name == "m" && reported.lock().unwrap().is_empty() {
                thread::yield_now();
            }
            monitors.exit(id, 1, &emit);
        });
        let mut reported = reported.into_inner().unwrap();
        reported.sort_unstable();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(reported, expected);
    }
}

#[test]
fn one_thread_at_a_time_is_inside() {
    let (monitors, id) = made("m");
    let (inside, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for me in 1..=4 {
            let (monitors, inside, total) = (&monitors, &inside, &total);
            scope.spawn(move || {
                for _ in 0..1000 {
                    monitors.enter(id, me, &silent);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    total.fetch_add(1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    monitors.exit(id, me, &silent);
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 4000);
}

#[test]
fn waiting_gives_the_monitor_up_and_takes_it_back() {
    let (monitors, id) = made("m");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            monitors.enter(id, 2, &silent);
            monitors.enter(id, 2, &silent);
            monitors.wait(id, 2, 0);
            let mut seen = Vec::new();
            monitors.used(|usage| seen.push((usage.owner, usage.count)));
            monitors.exit(id, 2, &silent);
            monitors.exit(id, 2, &silent);
            seen
        });
        let mut is_waiting = false;
        while !is_waiting {
            monitors.used(|usage| is_waiting = usage.waiting == [2]);
            thread::yield_now();
        }
        monitors.notify_all(id, 1); // not the owner: nothing happens
        monitors.enter(id, 1, &silent);
        monitors.notify_all(id, 1);
        monitors.exit(id, 1, &silent);
        assert_eq!(waiter.join().unwrap(), [(2, 2)]);
    });
    monitors.enter(id, 1, &silent);
    monitors.wait(id, 1, 5); // until the timeout
    monitors.exit(id, 1, &silent);
}

#[test]
fn wrong_and_destroyed_handles_do_nothing() {
    let (monitors, id) = made("m");
    monitors.enter(id, 1, &silent);
    thread::scope(|scope| {
        scope.spawn(|| monitors.enter(id, 2, &silent));
        let mut is_blocked = false;
        while !is_blocked {
            monitors.used(|usage| is_blocked = usage.entering == [2]);
        }
        monitors.destroy(id); // the waiting thread continues
    });
    for wrong in [0, id, 99, usize::MAX] {
        monitors.enter(wrong, 1, &silent);
        monitors.wait(wrong, 1, 0);
        monitors.notify_all(wrong, 1);
        monitors.exit(wrong, 1, &silent);
        monitors.destroy(wrong);
    }
}
