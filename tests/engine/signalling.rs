//! Control signals (cases R18, R19).

use tenterhook::{
    FailureCause, IncomingMessagePayload, ModelRequestPayload, ModelResponsePayload, Outcome, OutgoingTextPayload,
    Signal,
};

use crate::agents::{agent, failure};

#[tokio::test]
async fn r18_a_signal_that_a_point_does_not_take_is_discarded_at_closed_points_too() {
    let agent = agent(
        "
@modify_model_request()
async def reject(p: ModelRequestPayload) -> ModelRequestPayload:
    p.messages.append({'role': 'user'})
    raise HookRejection(reason='no')

@modify_model_response()
async def reject_response(p: ModelResponsePayload) -> ModelResponsePayload:
    raise HookRejection('no', 'Sorry')

@modify_incoming_message()
async def retry(p: IncomingMessagePayload) -> IncomingMessagePayload:
    raise RetryModel('again')
",
    );
    let request = ModelRequestPayload::new("s", vec![]);
    let rejection =
        |response: Option<&str>| Signal::Rejection { reason: "no".into(), response: response.map(Into::into) };
    assert_eq!(
        agent.engine.modify(request.clone()).await,
        Outcome::Proceed { payload: request, changed: false, failure: None, discarded_signal: Some(rejection(None)) }
    );
    let response = ModelResponsePayload::new("s");
    assert_eq!(
        agent.engine.modify(response.clone()).await,
        Outcome::Proceed {
            payload: response,
            changed: false,
            failure: None,
            discarded_signal: Some(rejection(Some("Sorry")))
        }
    );
    let message = IncomingMessagePayload::new("s", "a");
    let retry = Signal::Retry { feedback: "again".into() };
    assert_eq!(
        agent.engine.modify(message.clone()).await,
        Outcome::Proceed { payload: message, changed: false, failure: None, discarded_signal: Some(retry) }
    );
    let discarded: Vec<_> = agent.engine.statistics().iter().map(|hook| (hook.calls, hook.discarded_signals)).collect();
    assert_eq!(discarded, [(1, 1), (1, 1), (1, 1)]);
}

#[tokio::test]
async fn r19_a_subclass_and_a_positional_argument_count_as_the_signal() {
    let agent = agent(
        "
class Ungrounded(RetryModel):
    def __init__(self) -> None:
        super().__init__('only from the passages')

@modify_model_response()
async def retry(p: ModelResponsePayload) -> ModelResponsePayload:
    raise Ungrounded if p.text is None else RetryModel('x')

@modify_outgoing_text()
async def reject(p: OutgoingTextPayload) -> OutgoingTextPayload:
    raise HookRejection('unfit', response_message='Let me rephrase that.')
",
    );
    let mut response = ModelResponsePayload::new("s");
    let outcome = agent.engine.modify(response.clone()).await;
    assert_eq!(outcome, Outcome::Retry { feedback: "only from the passages".into() });
    response.text = Some("a".into());
    assert_eq!(agent.engine.modify(response).await, Outcome::Retry { feedback: "x".into() });
    assert_eq!(
        agent.engine.modify(OutgoingTextPayload::new("s", "a")).await,
        Outcome::Reject { reason: "unfit".into(), response: Some("Let me rephrase that.".into()) }
    );
}

#[tokio::test]
async fn a_signal_whose_words_cannot_be_carried_fails() {
    let agent = agent(
        "
@modify_outgoing_text()
async def reject(p: OutgoingTextPayload) -> OutgoingTextPayload:
    raise HookRejection(reason=5)

@modify_model_response()
async def retry(p: ModelResponsePayload) -> ModelResponsePayload:
    raise RetryModel('\\ud800')
",
    );
    let said = failure(agent.engine.modify(OutgoingTextPayload::new("s", "a")).await);
    assert_eq!(said, "It raised `HookRejection` whose `reason` is a `int`; expected a `str`");
    let Outcome::Proceed { failure: Some(failed), .. } = agent.engine.modify(ModelResponsePayload::new("s")).await
    else {
        panic!("an open failure proceeds")
    };
    let FailureCause::InvalidResult { message } = failed.cause else { panic!("an invalid result") };
    assert!(message.starts_with("It raised `RetryModel`: `feedback` holds a lone surrogate"), "{message}");
}

#[tokio::test]
async fn r18_a_malformed_signal_that_has_no_effect_is_no_failure() {
    let agent = agent(
        "
@modify_model_request()
async def retry(p: ModelRequestPayload) -> ModelRequestPayload:
    raise RetryModel(None)
",
    );
    let request = ModelRequestPayload::new("s", vec![]);
    let discarded = Some(Signal::Retry { feedback: String::new() });
    assert_eq!(
        agent.engine.modify(request.clone()).await,
        Outcome::Proceed { payload: request, changed: false, failure: None, discarded_signal: discarded }
    );
}
