//! Signals: SIGUSR1 asks for a savepoint; the first SIGINT or SIGTERM asks for an orderly end, a second one ends the process from within its handler. Two
//! that come together are one: `timeout` and some shells send one to the process and one to its group.

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What has been asked for from outside.
pub struct Signals {
    asked: Arc<AtomicUsize>,
    savepoint: Arc<AtomicBool>,
}

/// Signals that come within this time are one.
const TOGETHER: Duration = Duration::from_millis(200);

/// A wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Stop {
    /// What the command leaves with: 128 and the signal's number.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

impl Signals {
    /// Takes over the signals.
    pub fn watch() -> io::Result<Self> {
        let (again, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for (signal, stop) in [(SIGINT, Stop::Interrupt), (SIGTERM, Stop::Terminate)] {
            flag::register_conditional_shutdown(signal, i32::from(stop.exit_code()), again.clone())?;
            flag::register_usize(signal, asked.clone(), usize::from(stop.exit_code()))?;
        }
        // On a thread of its own: the others may be stuck, which is what a second signal is for.
        let first = asked.clone();
        std::thread::Builder::new().name("snapring-signals".to_owned()).spawn(move || {
            while first.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(TOGETHER / 4);
            }
            std::thread::sleep(TOGETHER);
            again.store(true, Ordering::Relaxed);
        })?;
        let savepoint = Arc::new(AtomicBool::new(false));
        flag::register(SIGUSR1, savepoint.clone())?;
        outlive_file_limits()?;
        Ok(Self { asked, savepoint })
    }

    /// Whether a savepoint has been asked for since this was last looked at.
    pub fn take_savepoint(&self) -> bool {
        self.savepoint.swap(false, Ordering::Relaxed)
    }

    /// The signal to end that came, if one has.
    pub fn stop(&self) -> Option<Stop> {
        let asked = self.asked.load(Ordering::Relaxed);
        [Stop::Interrupt, Stop::Terminate].into_iter().find(|stop| usize::from(stop.exit_code()) == asked)
    }
}

/// SIGXFSZ is answered with nothing: a write beyond the limit of a file's size is then an error of that write, and not the
/// end of the process.
pub fn outlive_file_limits() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}
