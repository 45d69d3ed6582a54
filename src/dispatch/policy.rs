//! What an answer means at a point: the one place where signals and fail policies are applied.

use std::sync::Arc;
use std::time::Duration;

use super::call::Answer;
use crate::hooks::{AnyPayload, FailPolicy, FailureCause, HandlerFailure, HandlerId, Outcome, Signal};

/// Turns a modify handler's answer into what the caller must do. `given` is the payload as it entered the point.
pub(super) fn decide(
    handler: &Arc<HandlerId>,
    answer: Answer,
    elapsed: Duration,
    given: impl FnOnce() -> AnyPayload,
) -> Outcome<AnyPayload> {
    let proceed =
        |payload, changed, failure, discarded_signal| Outcome::Proceed { payload, changed, failure, discarded_signal };
    let spec = handler.point.spec();
    let cause = match answer {
        Answer::Unchanged => return proceed(given(), false, None, None),
        Answer::Changed(payload) => return proceed(payload, true, None, None),
        Answer::Signal(signal) if spec.signals.contains(&signal.kind()) => {
            return match signal {
                Signal::Retry { feedback } => Outcome::Retry { feedback },
                Signal::Rejection { reason, response } => Outcome::Reject { reason, response },
            };
        }
        Answer::Signal(signal) => return proceed(given(), false, None, Some(signal)),
        Answer::Failure(cause) => cause,
        Answer::Dropped | Answer::Withdrawn => FailureCause::Lost,
    };
    let failure = HandlerFailure { handler: Arc::clone(handler), elapsed, cause };
    match spec.policy {
        Some(FailPolicy::Open) => proceed(given(), false, Some(failure), None),
        Some(FailPolicy::Closed) | None => Outcome::Failed(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{
        IncomingMessagePayload, Lane, ModelRequestPayload, ModelResponsePayload, ModifiablePayload,
        OutgoingTextPayload, Point, ToolResultPayload,
    };
    use proptest::prelude::*;

    fn handler(point: Point) -> Arc<HandlerId> {
        Arc::new(HandlerId {
            point,
            lane: Lane::Modify,
            module: "hooks".into(),
            function: "change".into(),
            file: "hooks.py".into(),
            line: 1,
            timeout: Duration::from_millis(500),
        })
    }

    fn signals() -> impl Strategy<Value = Signal> {
        prop_oneof![
            ".*".prop_map(|feedback| Signal::Retry { feedback }),
            (".*", proptest::option::of(".*")).prop_map(|(reason, response)| Signal::Rejection { reason, response }),
        ]
    }

    fn causes() -> impl Strategy<Value = FailureCause> {
        prop_oneof![
            any::<u64>().prop_map(|limit_ms| FailureCause::Timeout { limit_ms }),
            ".*".prop_map(|message| FailureCause::InvalidResult { message }),
            ".*".prop_map(|message| FailureCause::Raised { kind: "E".into(), message, frames: vec![] }),
            Just(FailureCause::EngineFull),
            Just(FailureCause::ShutDown),
            Just(FailureCause::Lost),
        ]
    }

    fn outcome<P: ModifiablePayload>(given: P, answer: Answer) -> Outcome<P> {
        let outcome = decide(&handler(P::POINT), answer, Duration::ZERO, move || given.into_any());
        outcome.map(|payload| P::from_any(payload).unwrap())
    }

    fn obeys<P: ModifiablePayload>(given: &P, changed: P, signal: &Signal, cause: &FailureCause) {
        let (policy, signals) = (P::POINT.spec().policy, P::POINT.spec().signals);
        let go_on = |changed, failure, discarded_signal| Outcome::Proceed {
            payload: given.clone(),
            changed,
            failure,
            discarded_signal,
        };
        assert_eq!(outcome(given.clone(), Answer::Unchanged), go_on(false, None, None));
        assert_eq!(
            outcome(given.clone(), Answer::Changed(changed.clone().into_any())),
            Outcome::Proceed { payload: changed, changed: true, failure: None, discarded_signal: None }
        );
        let failure = HandlerFailure { handler: handler(P::POINT), elapsed: Duration::ZERO, cause: cause.clone() };
        let failed = outcome(given.clone(), Answer::Failure(cause.clone()));
        match policy {
            Some(FailPolicy::Open) => assert_eq!(failed, go_on(false, Some(failure), None)),
            _ => assert_eq!(failed, Outcome::Failed(failure)),
        }
        let signalled = outcome(given.clone(), Answer::Signal(signal.clone()));
        if signals.contains(&signal.kind()) {
            let expected = match signal.clone() {
                Signal::Retry { feedback } => Outcome::Retry { feedback },
                Signal::Rejection { reason, response } => Outcome::Reject { reason, response },
            };
            assert_eq!(signalled, expected);
        } else {
            assert_eq!(signalled, go_on(false, None, Some(signal.clone())));
        }
    }

    proptest! {
        #[test]
        fn every_answer_becomes_what_the_table_says(signal in signals(), cause in causes(), text in ".*") {
            let text = || text.clone();
            obeys(&IncomingMessagePayload::new("s", "given"), IncomingMessagePayload::new("s", text()), &signal, &cause);
            obeys(&OutgoingTextPayload::new("s", "given"), OutgoingTextPayload::new("s", text()), &signal, &cause);
            obeys(&ModelRequestPayload::new("s", vec![]), ModelRequestPayload::new("t", vec![]), &signal, &cause);
            obeys(&ModelResponsePayload::new("s"), ModelResponsePayload::new("t"), &signal, &cause);
            let result = |value: String| ToolResultPayload::new("s", "t", serde_json::Map::new(), value);
            obeys(&result("v".into()), result(text()), &signal, &cause);
        }
    }
}
