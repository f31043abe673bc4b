//! Laps, one sentence a test. What comes of them between tasks is in `tasks.rs`.

use snapring::checkpoint::{Component, LapRole, LapStep, Laps};

fn report(lap: u64, dirty: bool) -> Option<LapStep> {
    Some(LapStep::Report { lap, dirty })
}

#[test]
fn a_head_begins_when_its_outside_inputs_have_ended_and_nothing_lies_ready() {
    let mut head = Laps::new(LapRole::Head, &[false, true]);
    assert!(!head.is_on());
    assert_eq!(head.next(1, true), None);
    head.ended(0);
    assert!(head.is_on());
    assert_eq!(head.next(1, false), None);
    assert_eq!(head.next(1, true), Some(LapStep::Send(1)));
    assert_eq!(head.next(1, true), None, "once");
}

#[test]
fn a_head_reports_what_it_has_processed_since() {
    let mut head = Laps::new(LapRole::Head, &[false, true]);
    head.processed(1);
    head.ended(0);
    assert_eq!(head.next(1, true), Some(LapStep::Send(1)));
    head.processed(1);
    head.marker(1, 1);
    assert_eq!(head.next(1, false), report(1, true), "also if something lies ready");
    assert_eq!(head.next(1, true), None, "once");
    assert_eq!(head.next(2, true), Some(LapStep::Send(2)));
    head.marker(1, 2);
    assert_eq!(head.next(2, true), report(2, false));
    assert_eq!(head.next(Component::ENDED, true), None);
}

#[test]
fn a_marker_may_come_before_the_heads_own() {
    let mut head = Laps::new(LapRole::Head, &[true, true]);
    head.marker(0, 1);
    head.marker(1, 1);
    assert_eq!(head.next(1, true), Some(LapStep::Send(1)));
    assert_eq!(head.next(1, true), report(1, false));
}

#[test]
fn a_body_task_passes_a_marker_once_it_has_it_everywhere_and_nothing_else_can_come() {
    let mut body = Laps::new(LapRole::Body, &[true, false, true]);
    body.marker(0, 1);
    assert_eq!(body.next(1, true), None);
    body.marker(2, 1);
    assert_eq!(body.next(1, true), None, "an outside input lives");
    body.ended(1);
    assert_eq!(body.next(1, false), None, "a timer waits");
    assert_eq!(body.next(1, true), Some(LapStep::Send(1)));
    assert_eq!(body.next(1, true), None);
}

#[test]
fn a_task_outside_of_loops_has_nothing_to_do() {
    let mut task = Laps::new(LapRole::None, &[false]);
    task.processed(0);
    task.ended(0);
    assert!(!task.is_on() && task.next(1, true).is_none());
}

#[test]
fn a_component_ends_with_its_first_clean_lap() {
    let mut component = Component::new(2);
    assert_eq!((component.lap(), component.report(1, true)), (1, None));
    assert_eq!(component.report(1, false), Some(2));
    assert_eq!((component.report(2, false), component.report(2, false)), (None, Some(Component::ENDED)));
    assert_eq!(component.lap(), Component::ENDED);
}

#[test]
#[should_panic(expected = "from outside the loop")]
fn markers_stay_inside() {
    Laps::new(LapRole::Body, &[true, false]).marker(1, 1);
}

#[test]
#[should_panic(expected = "lap 2 reported in lap 1")]
fn a_lap_that_is_not_under_way_is_a_fault_of_the_shell() {
    let _ = Component::new(1).report(2, false);
}
