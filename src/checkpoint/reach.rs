//! Which tasks a marker comes to. It must not know operators: it is asked about tasks, for only some of a stage may be
//! reached, and only some may be live.
//!
//! Rule 18 (of the project's protocols): initiators are chosen freely, but a task to which no marker would come has to begin
//! by itself. That is looked up when the job is built, and again over the live tasks at each request.

/// Who sends to whom.
#[derive(Clone, Debug)]
pub struct Reach {
    next: Vec<Vec<u32>>,
}

impl Reach {
    /// `next` has for each task those that it has rings to.
    #[must_use]
    pub fn new(next: Vec<Vec<u32>>) -> Self {
        Self { next }
    }

    /// The live tasks to which no marker comes if the live ones among `initiators` begin, in order. One that is not live
    /// passes nothing on.
    pub fn unreached(&self, initiators: &[u32], is_live: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut reached = vec![false; self.next.len()];
        let mut found = initiators.to_vec();
        while let Some(task) = found.pop() {
            if is_live(task) && !std::mem::replace(&mut reached[task as usize], true) {
                found.extend(&self.next[task as usize]);
            }
        }
        (0..self.next.len() as u32).filter(|task| is_live(*task) && !reached[*task as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_goes_where_rings_lead_from_live_tasks() {
        // 0 -> 1 -> 2 -> 1, 3 -> 2
        let reach = Reach::new(vec![vec![1], vec![2], vec![1], vec![2]]);
        assert_eq!(reach.unreached(&[0], |_| true), [3]);
        assert_eq!(reach.unreached(&[3], |_| true), [0]);
        assert_eq!(reach.unreached(&[2], |_| true), [0, 3]);
        assert_eq!(reach.unreached(&[], |_| true), [0, 1, 2, 3]);
        assert_eq!(reach.unreached(&[0], |task| task != 0), [1, 2, 3], "an initiator that has finished begins nothing");
        assert_eq!(reach.unreached(&[0], |task| task != 1), [2, 3], "nor does a finished one pass on");
    }
}
