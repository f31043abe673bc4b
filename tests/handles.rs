//! Jobs with a handle at each end, as an embedder runs them: on threads, step by step, stopped, restored, dropped.

use futures_core::Stream;
use futures_sink::Sink;
use snapring::channel::Wait;
use snapring::handle::{Input, Output, OutputError, PushError};
use snapring::operator::Progress;
use snapring::runtime::Restart;
use snapring::snapshot::{Store, StoreOptions, sim::SimDisk};
use snapring::{Checkpoints, Config, Dataflow};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

/// A running count per key between two handles.
fn counting() -> (Dataflow, Input<u64>, Output<(u64, u64)>) {
    let flow = Dataflow::new("counting");
    let (input, stream) = flow.input::<u64>("keys");
    let output = stream.key_by(|key| *key).count("counts").output("results");
    (flow, input, output)
}

fn workers(workers: usize) -> Config {
    Config::new().unpinned_workers(workers)
}

/// The next result; fails after a long while.
fn next<T: Send>(output: &mut Output<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        match output.poll() {
            Ok(Some(result)) => return Some(result.record),
            Ok(None) => assert!(start.elapsed() < Duration::from_secs(60), "no result, no end"),
            Err(OutputError::Closed { error: None }) => return None,
            Err(error) => panic!("{error}"),
        }
        output.wait(Duration::from_secs(1));
    }
}

fn push_all(input: &mut Input<u64>, keys: impl IntoIterator<Item = u64>) {
    let mut keys = keys.into_iter().peekable();
    while keys.peek().is_some() {
        match input.push_batch(&mut keys) {
            Ok(_) => {}
            Err(PushError::Full(())) => drop(input.wait(Duration::from_secs(60))),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_answer_comes_without_a_batch_to_wait_for() {
    for wait in [Wait::Park, Wait::Yield, Wait::Spin] {
        for parallelism in [1, 3] {
            let (flow, mut input, mut output) = counting();
            let job = flow.start(workers(2).parallelism(parallelism).wait(wait)).unwrap();
            for count in 1..=50 {
                input.push(7).unwrap();
                assert_eq!(next(&mut output), Some((7, count)));
                if count % 25 == 0 {
                    std::thread::sleep(Duration::from_millis(5)); // long enough to fall asleep
                }
            }
            input.close().unwrap();
            assert_eq!(next(&mut output), None);
            assert_eq!(job.wait().unwrap().records, 50);
        }
    }
}

#[test]
fn rings_of_one_slot_hold_up_whoever_is_ahead() {
    let (flow, mut input, mut output) = counting();
    let job = flow.start(workers(1).ring_capacity(1).batch_len_max(1).parallelism(2)).unwrap();
    let pusher = std::thread::spawn(move || {
        push_all(&mut input, (0..5_000).map(|n| n % 10));
        input
    });
    std::thread::sleep(Duration::from_millis(20)); // nothing is polled: everything is full
    let mut counts = [0; 10];
    for _ in 0..5_000 {
        let (key, count) = next(&mut output).unwrap();
        counts[key as usize] += 1;
        assert_eq!(counts[key as usize], count);
    }
    assert_eq!(counts, [500; 10]);
    pusher.join().unwrap().close().unwrap();
    assert_eq!(next(&mut output), None);
    job.wait().unwrap();
}

#[test]
fn a_handle_that_is_dropped_does_not_hold_up_the_job() {
    let (flow, mut input, output) = counting();
    let job = flow.start(workers(2).ring_capacity(1).batch_len_max(1)).unwrap();
    drop(output);
    push_all(&mut input, 0..1_000);
    input.close().unwrap();
    drop(input);
    assert_eq!(job.wait().unwrap().records, 1_000);
}

#[test]
fn a_stopped_job_says_what_it_has_taken_and_goes_on_from_there() {
    let state = tempfile::tempdir().unwrap();
    let config = || workers(2).checkpoints(Checkpoints::on_demand().to(state.path()));
    let (flow, mut input, mut output) = counting();
    let job = flow.start(config()).unwrap();
    push_all(&mut input, [1, 1, 2]);
    let results: Vec<_> = (0..3).map(|_| next(&mut output).unwrap()).collect();
    assert_eq!(results.iter().map(|(_, count)| count).sum::<u64>(), 4);
    assert_eq!(input.durable_position(), 0);
    let checkpoint = job.checkpoint().unwrap().wait().unwrap();
    assert!(output.wait_durable(checkpoint.epoch, Duration::ZERO));
    assert!(!output.wait_durable(checkpoint.epoch + 1, Duration::from_millis(1)));
    assert_eq!((output.durable_epoch(), input.durable_position()), (checkpoint.epoch, 3));
    push_all(&mut input, [1]);
    let late = loop {
        if let Some(result) = output.poll().unwrap() {
            break result;
        }
    };
    assert_eq!((late.record, late.epoch, late.may_repeat), ((1, 3), checkpoint.epoch + 1, true));
    drop(job); // at once: the last record is not covered
    assert_eq!(output.poll(), Err(OutputError::Closed { error: None }));
    assert!(matches!(input.push(5), Err(PushError::Closed { error: None, record: 5 })));

    // Nobody has closed the input: that the handle goes is no end.
    let (flow, input, _output) = counting();
    let job = flow.start(config()).unwrap();
    drop(input);
    assert!(!job.wait_for(Duration::from_millis(30)));
    assert!(job.stop(Duration::from_secs(60)).unwrap().checkpoint.is_ok());

    let (flow, mut input, mut output) = counting();
    let job = flow.start(config()).unwrap();
    assert_eq!(input.position(), Some(3), "push again from the fourth on");
    push_all(&mut input, [1]);
    assert_eq!(next(&mut output), Some((1, 3)));
    input.close().unwrap();
    assert_eq!(next(&mut output), None);
    job.wait().unwrap();

    let (flow, mut input, mut output) = counting();
    let job = flow.start(config()).unwrap();
    job.wait().unwrap();
    assert!(matches!(input.push(1), Err(PushError::Closed { error: None, .. })), "it had ended");
    assert_eq!(output.poll(), Err(OutputError::Closed { error: None }));
}

#[test]
fn the_first_error_reaches_both_handles() {
    let flow = Dataflow::new("fails");
    let (mut input, stream) = flow.input::<u64>("numbers");
    let mut output = stream.try_map(|number| if number < 2 { Ok(number) } else { Err("too large") }).output("out");
    let job = flow.start(workers(1)).unwrap();
    (0..2).for_each(|number| input.push(number).unwrap());
    assert_eq!((next(&mut output), next(&mut output)), (Some(0), Some(1)));
    input.push(2).unwrap();
    let error = loop {
        match output.poll() {
            Err(OutputError::Closed { error }) => break error.expect("the job has failed"),
            _ => output.wait(Duration::from_secs(1)),
        };
    };
    let told = job.wait().unwrap_err().to_string();
    assert!(told.contains("too large") && told.contains("record 3"), "{told}");
    assert_eq!(&*error, told);
    assert!(matches!(input.push(9), Err(PushError::Closed { error: Some(error), .. }) if *error == told));
}

#[test]
fn a_panic_of_the_pusher_is_not_the_end_of_the_input() {
    let (flow, mut input, _output) = counting();
    let job = flow.start(workers(1)).unwrap();
    let pusher = std::thread::spawn(move || {
        push_all(&mut input, [1]);
        std::panic::resume_unwind(Box::new("pusher"));
    });
    assert!(pusher.join().is_err());
    let error = job.wait().unwrap_err().to_string();
    assert!(error.contains("operator `keys`") && error.contains("panic of the thread"), "{error}");
}

#[test]
fn nothing_is_pushed_into_a_job_that_was_never_started() {
    let (flow, mut input, mut output) = counting();
    assert_eq!((input.push(1), output.poll()), (Err(PushError::Full(1)), Ok(None)));
    drop(flow);
    assert!(matches!(input.push(1), Err(PushError::Closed { .. })));
    assert!(matches!(output.poll(), Err(OutputError::Closed { .. })));

    // A configuration that cannot be.
    let (flow, mut input, _output) = counting();
    assert!(flow.start(workers(1).ring_capacity(0)).is_err());
    assert!(matches!(input.push(1), Err(PushError::Closed { .. })));
}

/// Step by step, with a crash after each step: pushed again from where the job says, every record is counted once.
#[test]
fn every_crash_is_mended_by_pushing_again() {
    let keys: Vec<u64> = (0..40).map(|n| n * n % 7).collect();
    for crash_at in 0..120 {
        let disk = SimDisk::new();
        let config = || {
            let store = Store::open_on(Box::new(disk.clone()), StoreOptions::default()).unwrap();
            workers(1)
                .parallelism(2)
                .ring_capacity(1)
                .batch_len_max(2)
                .checkpoints(Checkpoints::on_demand().store(store))
        };
        let (mut durable, mut latest) = (Vec::new(), Vec::new());
        for is_last in [false, true] {
            let (flow, mut input, mut output) = counting();
            let mut job = flow.into_local(config()).unwrap();
            let from = input.position().unwrap() as usize;
            durable.retain(|(epoch, _)| Some(*epoch) <= job.restored_epoch());
            let (mut left, mut pending, mut step) = (keys[from..].iter().copied().peekable(), Vec::new(), 0);
            while (is_last || step < crash_at) && job.step().unwrap() != Progress::Done {
                step += 1;
                if left.peek().is_none() {
                    let _ = input.close();
                } else if step % 3 == 0 {
                    let _ = input.push_batch(&mut left.by_ref().take(1));
                }
                if step % 11 == 0 {
                    pending.extend(job.checkpoint());
                }
                while let Ok(Some(batch)) = output.poll_batch() {
                    let epoch = batch.epoch();
                    durable.extend(batch.map(|result| (epoch, result)));
                }
            }
            drop(job);
            while let Ok(Some(result)) = output.poll() {
                durable.push((result.epoch, result.record));
            }
            latest = durable.iter().map(|(_, result)| *result).collect();
        }
        let mut expected = [0; 7];
        let mut results: Vec<(u64, u64)> = keys
            .iter()
            .map(|key| {
                expected[*key as usize] += 1;
                (*key, expected[*key as usize])
            })
            .collect();
        results.sort_unstable();
        latest.sort_unstable();
        assert_eq!(latest, results, "crash at step {crash_at}");
    }
}

#[test]
fn who_pushes_without_a_pause_does_not_hold_up_a_drain() {
    let flow = Dataflow::new("busy");
    let (mut input, stream) = flow.input::<u64>("numbers");
    let mut output = stream.output("out");
    let mut job = flow.into_local(workers(1).ring_capacity(2)).unwrap();
    assert_eq!((input.push(1), input.push(2)), (Ok(()), Ok(())));
    job.drain();
    let mut received = Vec::new();
    for step in 0.. {
        assert!(step < 1_000, "the drain does not end");
        if job.step().unwrap() == Progress::Done {
            break;
        }
        while input.push(3).is_ok() {}
        received.extend(std::iter::from_fn(|| output.poll().unwrap()).map(|result| result.record));
    }
    while let Ok(Some(result)) = output.poll() {
        received.push(result.record);
    }
    assert!(received.starts_with(&[1, 2]) && received.len() <= 4, "what was pushed before is taken: {received:?}");
    assert!(matches!(input.push(4), Err(PushError::Closed { error: None, record: 4 })));
}

/// A job that fails once, at its `fails_at`th record, and restarts.
fn failing_once(fails_at: u64, config: Config) -> (Dataflow, Config, Input<u64>, Output<(u64, u64)>) {
    let flow = Dataflow::new("fails-once");
    let (input, stream) = flow.input::<u64>("keys");
    let seen = AtomicU64::new(0);
    let output = stream
        .map(move |key| {
            assert!(seen.fetch_add(1, Ordering::Relaxed) + 1 != fails_at, "by and by");
            key
        })
        .key_by(|key| *key)
        .count("counts")
        .output("results");
    (flow, config.restart(Restart::attempts(2)), input, output)
}

#[test]
fn after_a_restart_the_pusher_pushes_again_and_the_poller_is_told() {
    for parallelism in [1, 2] {
        let state = tempfile::tempdir().unwrap();
        let config = workers(2).parallelism(parallelism).checkpoints(Checkpoints::on_demand().to(state.path()));
        let (flow, config, mut input, mut output) = failing_once(6, config);
        let job = flow.start(config).unwrap();
        push_all(&mut input, [1, 1, 1]);
        let before: Vec<_> = (0..3).map(|_| next(&mut output).unwrap()).collect();
        assert_eq!(before, [(1, 1), (1, 2), (1, 3)]);
        let epoch = job.checkpoint().unwrap().wait().unwrap().epoch;
        push_all(&mut input, [1, 1]);
        assert_eq!((next(&mut output), next(&mut output)), (Some((1, 4)), Some((1, 5))));
        input.push(1).unwrap(); // this one fails the job

        let from = loop {
            match input.push(1) {
                Err(PushError::Rewound { from, record: 1 }) => break from,
                Err(PushError::Closed { error, .. }) => panic!("{error:?}"),
                // It may still go into the ring of the attempt that is about to fail.
                _ => std::thread::yield_now(),
            }
        };
        assert_eq!((from, input.position()), (3, Some(3)));
        push_all(&mut input, [1, 1, 1]);
        let told = loop {
            match output.poll() {
                Err(error) => break error,
                Ok(_) => drop(output.wait(Duration::from_secs(1))),
            }
        };
        assert_eq!(told, OutputError::Rewound { epoch: epoch + 1 });
        let again: Vec<_> = (0..3).map(|_| next(&mut output).unwrap()).collect();
        assert_eq!(again, [(1, 4), (1, 5), (1, 6)]);
        input.close().unwrap();
        assert_eq!(next(&mut output), None);
        assert_eq!(job.wait().unwrap().restarts, 1);
    }
}

#[test]
fn a_restart_without_the_handle_says_what_is_missing() {
    let state = tempfile::tempdir().unwrap();
    let config = workers(1).parallelism(1).checkpoints(Checkpoints::on_demand().to(state.path()));
    let (flow, config, mut input, _output) = failing_once(2, config);
    let job = flow.start(config).unwrap();
    push_all(&mut input, [1, 2, 3]);
    drop(input);
    let error = job.wait().unwrap_err().to_string();
    assert!(error.contains("by and by") && error.contains("from 0 to 3 again"), "{error}");
}

/// The smallest executor.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);
    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Thread(std::thread::current())).into();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let start = Instant::now();
        std::thread::park_timeout(Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(60), "nobody woke the task");
    }
}

#[test]
fn tasks_of_an_executor_are_woken() {
    let (flow, mut input, mut output) = counting();
    let job = flow.start(workers(1).ring_capacity(1).batch_len_max(1)).unwrap();
    let sender = std::thread::spawn(move || {
        block_on(async {
            for key in 0..2_000 {
                poll_fn(|context| Pin::new(&mut input).poll_ready(context)).await.unwrap();
                Pin::new(&mut input).start_send(key % 3).unwrap();
            }
            poll_fn(|context| Pin::new(&mut input).poll_close(context)).await.unwrap();
        });
        input
    });
    let mut received = Vec::new();
    block_on(async {
        while let Some(result) = poll_fn(|context| Pin::new(&mut output).poll_next(context)).await {
            received.push(result.unwrap().record);
        }
    });
    assert_eq!(received.len(), 2_000);
    assert_eq!(received.iter().filter(|(_, count)| *count == 666).count(), 3);
    drop(sender.join().unwrap());
    job.wait().unwrap();
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    // The 14th and 15th fields, in hundredths of a second (proc_pid_stat(5)); the name before them may hold blanks.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    Duration::from_millis(ticks.map(|ticks| 10 * ticks.parse::<u64>().unwrap()).sum())
}

#[test]
#[ignore = "takes 10 s, and nothing else may run in this process: name it, with --ignored"]
fn an_idle_job_costs_next_to_no_cpu_time() {
    const WORKERS: u32 = 2;
    let (flow, mut input, mut output) = counting();
    let job = flow.start(workers(WORKERS as usize)).unwrap();
    input.push(1).unwrap();
    assert_eq!(next(&mut output), Some((1, 1)));
    std::thread::sleep(Duration::from_millis(100));
    let (start, before) = (Instant::now(), cpu_time());
    std::thread::sleep(Duration::from_secs(10));
    let share = (cpu_time() - before).as_secs_f64() / start.elapsed().as_secs_f64() / f64::from(WORKERS);
    println!("{:.3} % of a core per worker", share * 100.0);
    assert!(share < 0.01, "{share} of a core per idle worker");
    input.close().unwrap();
    job.wait().unwrap();
}

/// So often it is looked at how soon a sleeper does something.
const TIMES: u64 = 25;

/// A worker that sleeps looks by itself every 20 ms, so without a wake-up a result takes 10 ms in the middle. On a busy machine
/// most may take as long with one; but without, hardly so many come soon.
fn assert_woken(mut took: Vec<Duration>) {
    took.sort();
    assert!(took[TIMES as usize / 3] < Duration::from_millis(4), "{took:?}");
}

#[test]
fn who_makes_room_wakes_who_waits_for_it() {
    let (flow, mut input, mut output) = counting();
    let job = flow.start(workers(1).parallelism(1).ring_capacity(1).batch_len_max(1)).unwrap();
    let (mut took, mut on_the_way) = (Vec::new(), 0);
    for _ in 0..TIMES {
        // More than all rings hold: the tasks wait for the poller.
        while on_the_way < 2 || input.wait(Duration::from_millis(5)) {
            on_the_way += u32::from(input.push(1).is_ok());
        }
        std::thread::sleep(Duration::from_millis(60)); // fast asleep
        assert!(next(&mut output).is_some());
        let start = Instant::now();
        while output.poll().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
        took.push(start.elapsed());
        on_the_way -= 2;
    }
    input.close().unwrap();
    while next(&mut output).is_some() {}
    job.wait().unwrap();
    assert_woken(took);
}

#[test]
fn who_has_nothing_to_poll_holds_up_no_checkpoint() {
    let state = tempfile::tempdir().unwrap();
    let every = Checkpoints::every(Duration::from_millis(2)).to(state.path());
    let (flow, mut input, mut output) = counting();
    let job = flow.start(workers(1).ring_capacity(2).checkpoints(every)).unwrap();
    input.push(1).unwrap();
    assert_eq!(next(&mut output), Some((1, 1)));
    let before = output.durable_epoch();
    assert!(output.wait_durable(before + 20, Duration::from_secs(60)), "two slots are full of barriers");
    input.push(1).unwrap();
    let late = loop {
        if let Some(result) = output.poll().unwrap() {
            break result;
        }
    };
    assert!(late.record == (1, 2) && late.epoch > before + 20, "{late:?}");
    assert!(job.stop(Duration::from_secs(60)).unwrap().checkpoint.is_ok());
}

#[test]
fn a_push_wakes_a_worker_that_sleeps() {
    let (flow, mut input, mut output) = counting();
    let job = flow.start(workers(1)).unwrap();
    let took: Vec<_> = (1..=TIMES)
        .map(|count| {
            std::thread::sleep(Duration::from_millis(70)); // fast asleep, and not about to look by itself
            let start = Instant::now();
            input.push(1).unwrap();
            assert_eq!(next(&mut output), Some((1, count)));
            start.elapsed()
        })
        .collect();
    input.close().unwrap();
    job.wait().unwrap();
    assert_woken(took);
}
