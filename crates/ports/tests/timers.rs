//! Timers of a port.

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use iotomy_ports::{Clock, Closes, Errno, Port, Source, TimerId, TimerSetting};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn port() -> Port {
    Port::new(Closes::Checked).unwrap()
}

fn once(milliseconds: u64) -> TimerSetting {
    TimerSetting { value: Duration::from_millis(milliseconds), interval: Duration::ZERO }
}

/// Waits until an expiration is in the queue. The kernel may be later with it than with the end of a sleep.
fn until_expired(port: &Port) {
    iotomy_test_requirements::wait::until("the timer has expired", || port.queued() > 0);
}

#[test]
fn a_timer_does_not_run_until_it_is_set() {
    let port = port();
    let timer = port.add_timer(Clock::Monotonic, 5).unwrap();
    assert_eq!(port.timer(timer), Ok(TimerSetting::default()));
    assert_eq!(port.get(Some(Duration::from_millis(5))), Err(Errno::TIME));
}

#[test]
fn an_expiration_is_an_event_with_the_timer_and_its_user() {
    for clock in [Clock::Monotonic, Clock::Realtime, Clock::Boottime] {
        let port = port();
        let timer = port.add_timer(clock, 5).unwrap();
        let start = Instant::now();
        assert_eq!(port.set_timer(timer, once(4), false), Ok(TimerSetting::default()));
        let event = port.get(None).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(4));
        assert_eq!((event.source, event.events, event.user), (Source::Timer, 1, 5));
        assert_eq!(TimerId::from_object(event.object), Some(timer));
        assert_eq!(port.get(NOW), Err(Errno::TIME));
        assert_eq!(port.timer_overrun(timer), Ok(0));
    }
}

#[test]
fn expirations_that_nobody_retrieved_are_one_event_with_their_number() {
    let port = port();
    let timer = port.add_timer(Clock::Monotonic, 5).unwrap();
    let each = Duration::from_millis(1);
    port.set_timer(timer, TimerSetting { value: each, interval: each }, false).unwrap();
    thread::sleep(Duration::from_millis(10));
    until_expired(&port);
    assert_eq!(port.queued(), 1);
    let event = port.get(NOW).unwrap();
    assert!(event.events >= 10, "{event:?}");
    assert_eq!(port.timer_overrun(timer), Ok(event.events - 1));
    // It stays associated.
    assert!(port.get(None).unwrap().events >= 1);
    assert!(port.get(None).unwrap().events >= 1);
}

#[test]
fn a_timer_can_expire_at_a_time_of_its_clock() {
    let port = port();
    let timer = port.add_timer(Clock::Realtime, 5).unwrap();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let value = now + Duration::from_millis(4);
    port.set_timer(timer, TimerSetting { value, interval: Duration::ZERO }, true).unwrap();
    port.get(None).unwrap();
    assert!(SystemTime::UNIX_EPOCH.elapsed().unwrap() >= value);
    // A time that has passed is an expiration at once.
    let value = Duration::from_secs(1);
    port.set_timer(timer, TimerSetting { value, interval: Duration::ZERO }, true).unwrap();
    assert_eq!(port.get(None).unwrap().events, 1);
}

#[test]
fn setting_a_timer_returns_what_was_left_and_makes_expirations_void() {
    let port = port();
    let timer = port.add_timer(Clock::Monotonic, 5).unwrap();
    port.set_timer(timer, once(100_000), false).unwrap();
    let left = port.timer(timer).unwrap().value;
    assert!(left > Duration::from_secs(1) && left <= Duration::from_secs(100));
    assert!(port.set_timer(timer, once(1), false).unwrap().value <= left);
    until_expired(&port);
    assert_eq!(port.queued(), 1);
    port.set_timer(timer, once(0), false).unwrap();
    assert_eq!(port.queued(), 0);
    assert_eq!(port.get(NOW), Err(Errno::TIME));
    port.set_timer(timer, once(1), false).unwrap();
    assert_eq!(port.get(None).unwrap().events, 1);
}

#[test]
fn a_removed_timer_sends_nothing_and_is_unknown() {
    let port = port();
    let timer = port.add_timer(Clock::Monotonic, 5).unwrap();
    port.set_timer(timer, once(1), false).unwrap();
    until_expired(&port);
    assert_eq!(port.queued(), 1);
    port.remove_timer(timer).unwrap();
    assert_eq!(port.get(NOW), Err(Errno::TIME));
    assert_eq!(port.remove_timer(timer), Err(Errno::INVAL));
    assert_eq!(port.timer(timer), Err(Errno::INVAL));
    assert_eq!(port.set_timer(timer, once(1), false), Err(Errno::INVAL));
    assert_eq!(port.timer_overrun(timer), Err(Errno::INVAL));
}

#[test]
fn several_timers_are_told_apart_and_wake_a_thread_that_wants_all() {
    let port = port();
    let timers: Vec<_> =
        (0..20).map(|user| port.add_timer(Clock::Monotonic, user).unwrap()).collect();
    for (timer, milliseconds) in timers.iter().zip(1..) {
        port.set_timer(*timer, once(milliseconds), false).unwrap();
    }
    let mut users: Vec<_> = port.get_many(40, 20, None).unwrap().iter().map(|e| e.user).collect();
    users.sort_unstable();
    assert!(users.into_iter().eq(0..20));
}

#[test]
fn each_expiration_goes_to_one_of_several_threads() {
    let port = port();
    let timer = port.add_timer(Clock::Monotonic, 5).unwrap();
    let each = Duration::from_micros(200);
    let total = AtomicI32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Ok(event) = port.get(None)
                    && event.source == Source::Timer
                {
                    total.fetch_add(event.events, Ordering::SeqCst);
                }
            });
        }
        let start = Instant::now();
        port.set_timer(timer, TimerSetting { value: each, interval: each }, false).unwrap();
        while total.load(Ordering::SeqCst) < 100 {
            thread::sleep(each);
        }
        port.set_timer(timer, once(0), false).unwrap();
        let most = start.elapsed().as_nanos() / each.as_nanos();
        port.alert(1, 1);
        assert!(total.load(Ordering::SeqCst) as u128 <= most);
    });
}
