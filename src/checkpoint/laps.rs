//! The end of a loop: when has everything in it been worked off, once nothing comes in from without?
//!
//! A *component* is a strongly connected component of the task graph; an input into it from without is an *outside
//! input*, wherever it enters. It must not know what a record is, what a timer is, or how words travel. The idea is that
//! of termination detection by a marker that goes round and comes back clean (E. W. Dijkstra, W. H. J. Feijen,
//! A. J. M. van Gasteren, *Derivation of a Termination Detection Algorithm for Distributed Computations*, 1983), with
//! channels that keep the order, and all heads of a component at once.
//!
//! The rules, numbered as everywhere in the project:
//!
//! - **30.** One lap protocol per component, all its heads together. A head sends marker *k* when its outside inputs have
//!   ended. Any other task passes *k*, without blocking, once it has *k* on every input inside the component, its outside
//!   inputs have ended, and no timer waits. Heads (inner ones too) absorb markers; a head reports *k* once it has sent *k*
//!   and has *k* on all its inside inputs, in either order, and says whether it has *processed* a record from any inside
//!   input (inner heads: forward ones too) since it sent *k*. If all report none, the coordinator announces the end;
//!   else lap *k* + 1.
//! - **31.** Markers are never saved; laps begin anew after a restore.
//!
//! Markers go to outputs inside the component only: to each of them, and to no other.
//!
//! Why a clean lap means that the loop is empty: suppose a record is processed at a head after that head has reported *k*.
//! It lay behind *k* on its input, so whoever emitted it had sent *k* before. A body task that emits after it has passed
//! *k* has processed a record that lay behind *k* on one of its own inputs (nothing comes from without, no timer waits).
//! Going back so, one comes to a head that processed a record from an inside input after it sent *k*: before its report,
//! and then it said so; or after it, and then the same holds again, further back in time. That cannot go on for ever.

/// What a task is in its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LapRole {
    /// In no component.
    None,
    /// A declared feedback edge leads into it.
    Head,
    /// Any other task of the component.
    Body,
}

/// What a task does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LapStep {
    /// Put the marker of this lap behind everything in each output inside the component.
    Send(u64),
    /// A head tells its [`Component`] of this lap.
    Report {
        /// The number of the lap.
        lap: u64,
        /// Whether a record from an inside input was processed since the head sent the marker.
        dirty: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Input {
    is_inside: bool,
    has_ended: bool,
    /// The last marker that was taken from it.
    lap: u64,
}

/// One task's side of the lap protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Laps {
    role: LapRole,
    inputs: Vec<Input>,
    /// Number of outside inputs that have not ended.
    outside: usize,
    /// The last marker that was sent, and the last lap that was reported.
    sent: u64,
    reported: u64,
    is_dirty: bool,
}

impl Laps {
    /// A task with these inputs: whether each comes from within the task's component.
    ///
    /// # Panics
    /// If a task in a component has no input from within, or one in none has.
    #[must_use]
    pub fn new(role: LapRole, inside: &[bool]) -> Self {
        assert!(inside.contains(&true) == (role != LapRole::None), "{role:?} with inside inputs {inside:?}");
        let input = |&is_inside: &bool| Input { is_inside, has_ended: false, lap: 0 };
        Self {
            role,
            inputs: inside.iter().map(input).collect(),
            outside: inside.iter().filter(|inside| !**inside).count(),
            sent: 0,
            reported: 0,
            is_dirty: false,
        }
    }

    /// Whether laps concern this task now: it is in a component, and its outside inputs have ended. Only then
    /// [`LapStep`]s can be due.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.role != LapRole::None && self.outside == 0
    }

    /// Whether a declared feedback edge leads into this task.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.role == LapRole::Head
    }

    /// A batch of records from this input was processed, rest and spill included.
    #[inline]
    pub fn processed(&mut self, input: usize) {
        self.is_dirty |= self.inputs[input].is_inside;
    }

    /// The End was at the front of this input.
    pub fn ended(&mut self, input: usize) {
        let input = &mut self.inputs[input];
        if !std::mem::replace(&mut input.has_ended, true) && !input.is_inside {
            self.outside -= 1;
        }
    }

    /// A marker was at the front of this input.
    ///
    /// # Panics
    /// If the input comes from without, or markers do not come one after the other.
    pub fn marker(&mut self, input: usize, lap: u64) {
        let last = &mut self.inputs[input];
        assert!(last.is_inside, "marker {lap} on input {input}, from outside the loop");
        assert!(lap == last.lap + 1, "marker {lap} on input {input} after {}", last.lap);
        last.lap = lap;
    }

    /// What is due. `lap` is the word of the component ([`Component::lap`]). `is_quiet`: no timer waits, and at a head
    /// nothing lies ready to be processed either (that is for speed alone: a lap that is begun too early is not clean).
    /// Ask again until nothing is due.
    pub fn next(&mut self, lap: u64, is_quiet: bool) -> Option<LapStep> {
        if !self.is_on() {
            return None;
        }
        let here = self.inputs.iter().filter(|input| input.is_inside).map(|input| input.lap).min()?;
        match self.role {
            LapRole::Body => (here > self.sent && is_quiet).then(|| self.send(here)),
            LapRole::Head if here >= self.sent && self.sent > self.reported => {
                self.reported = self.sent;
                Some(LapStep::Report { lap: self.sent, dirty: self.is_dirty })
            }
            // A head that has a lap to report takes part in no other.
            LapRole::Head => {
                let begins = lap > self.sent && self.sent == self.reported && lap != Component::ENDED && is_quiet;
                begins.then(|| self.send(lap))
            }
            LapRole::None => None,
        }
    }

    fn send(&mut self, lap: u64) -> LapStep {
        self.sent = lap;
        self.is_dirty = false;
        LapStep::Send(lap)
    }
}

/// The laps of one component: what its heads report, taken together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    heads: usize,
    /// The lap under way, or [`Component::ENDED`].
    lap: u64,
    /// Heads that have not reported it.
    missing: usize,
    is_dirty: bool,
}

impl Component {
    /// The lap of a component in which nothing is left: its heads send End.
    pub const ENDED: u64 = u64::MAX;

    /// A component with this many heads. Its first lap is under way: heads begin it when they can.
    ///
    /// # Panics
    /// If there is no head.
    #[must_use]
    pub fn new(heads: usize) -> Self {
        assert!(heads > 0, "a component has heads");
        Self { heads, lap: 1, missing: heads, is_dirty: false }
    }

    /// What belongs in the word of this component: the lap that heads begin, or [`Component::ENDED`].
    #[must_use]
    pub fn lap(&self) -> u64 {
        self.lap
    }

    /// A head reports a lap. Returns the word, if it has changed.
    ///
    /// # Panics
    /// If that lap is not under way.
    pub fn report(&mut self, lap: u64, dirty: bool) -> Option<u64> {
        assert!(lap == self.lap, "lap {lap} reported in lap {}", self.lap);
        self.is_dirty |= dirty;
        self.missing -= 1;
        if self.missing > 0 {
            return None;
        }
        self.lap = if self.is_dirty { lap + 1 } else { Self::ENDED };
        (self.missing, self.is_dirty) = (self.heads, false);
        Some(self.lap)
    }
}
