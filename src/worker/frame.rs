//! What an engine and its worker tell each other: `MessagePack` behind a length of four bytes, little-endian.
//!
//! JSON would do for people, but its reader gives up at 128 levels and may miss the last bit of a number; payloads have to come back as they
//! went.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Severity};
use crate::dispatch::Answer;
use crate::hooks::{AnyPayload, FailureCause, HandlerId, Lane, Point, Signal};

/// What the engine tells its worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Load the agent; the first of all frames.
    Load(LoadSettings),
    /// Call a handler; its payload follows in the same frame.
    Call {
        /// The engine's number of the call.
        serial: u64,
        /// The handler's place in [`Report::Loaded`].
        handler: u32,
        /// How much of its time is over.
        waited: Duration,
    },
    /// Nobody waits for a call any more.
    Cancel {
        /// The engine's number of the call.
        serial: u64,
    },
    /// Say that you are there.
    Ping,
    /// End what runs, then end.
    Stop,
}

/// How the worker is to load the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadSettings {
    pub(crate) observe_timeout: Duration,
    pub(crate) modify_timeout: Duration,
    pub(crate) load_timeout: Duration,
    /// How long a thread may leave a wake-up unanswered.
    pub(crate) answer: Duration,
    /// The part of its time after which a call that waits is moved.
    pub(crate) share: f64,
}

/// What a worker tells its engine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The agent has been loaded.
    Loaded {
        /// Its handlers, in the order of registration.
        handlers: Vec<FoundHandler>,
        /// What is unwise.
        problems: Vec<FoundProblem>,
    },
    /// It could not be.
    Refused {
        /// Why, for people.
        message: String,
        /// What is wrong in the modules, where that is why.
        problems: Vec<FoundProblem>,
    },
    /// A call has ended; a changed payload follows in the same frame.
    Ended {
        /// The engine's number of the call.
        serial: u64,
        /// How long the handler has run.
        ran: Duration,
        /// How it ended.
        end: End,
    },
    /// The process has to be given up.
    Lost {
        /// The handler that is to blame, where it is known.
        culprit: Option<u32>,
        /// Where its thread is, the innermost frame last; empty where nobody could look.
        stack: Vec<String>,
    },
    /// The worker is there.
    Pong {
        /// Threads that run handlers.
        serving: usize,
        /// Threads that do not answer.
        stuck: usize,
        /// How often calls that waited were moved to another thread, since the load.
        taken_over: u64,
    },
}

/// How a call ended; as [`Answer`], but without the payload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum End {
    Unchanged,
    Changed,
    Signal(Signal),
    Failure(FailureCause),
    Dropped,
    Withdrawn,
}

impl End {
    /// The end that an answer is, and the payload that follows.
    pub(crate) fn of(answer: Answer) -> (Self, Option<AnyPayload>) {
        match answer {
            Answer::Unchanged => (Self::Unchanged, None),
            Answer::Changed(payload) => (Self::Changed, Some(payload)),
            Answer::Signal(signal) => (Self::Signal(signal), None),
            Answer::Failure(cause) => (Self::Failure(cause), None),
            Answer::Dropped => (Self::Dropped, None),
            Answer::Withdrawn => (Self::Withdrawn, None),
        }
    }

    /// The answer; `payload` reads what follows.
    pub(crate) fn into_answer(self, payload: impl FnOnce() -> io::Result<AnyPayload>) -> io::Result<Answer> {
        Ok(match self {
            Self::Unchanged => Answer::Unchanged,
            Self::Changed => Answer::Changed(payload()?),
            Self::Signal(signal) => Answer::Signal(signal),
            Self::Failure(cause) => Answer::Failure(cause),
            Self::Dropped => Answer::Dropped,
            Self::Withdrawn => Answer::Withdrawn,
        })
    }
}

/// A handler that a worker has registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundHandler {
    pub(crate) point: Point,
    pub(crate) lane: Lane,
    pub(crate) module: String,
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) timeout: Duration,
}

impl FoundHandler {
    /// Whether it is the same handler, maybe at another place in its file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.point, self.lane, &self.module, &self.function, self.timeout)
            == (other.point, other.lane, &other.module, &other.function, other.timeout)
    }
}

impl From<&HandlerId> for FoundHandler {
    fn from(id: &HandlerId) -> Self {
        Self {
            point: id.point,
            lane: id.lane,
            module: id.module.clone(),
            function: id.function.clone(),
            file: id.file.display().to_string(),
            line: id.line,
            timeout: id.timeout,
        }
    }
}

impl From<FoundHandler> for HandlerId {
    fn from(found: FoundHandler) -> Self {
        Self {
            point: found.point,
            lane: found.lane,
            module: found.module,
            function: found.function,
            file: PathBuf::from(found.file),
            line: found.line,
            timeout: found.timeout,
        }
    }
}

/// A problem that registration found: it has no place within its line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FoundProblem {
    pub(crate) rule: String,
    pub(crate) is_error: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
}

impl From<&Diagnostic> for FoundProblem {
    fn from(problem: &Diagnostic) -> Self {
        Self {
            rule: problem.rule.clone(),
            is_error: problem.severity == Severity::Error,
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            file: problem.file.display().to_string(),
            line: problem.line,
        }
    }
}

impl From<FoundProblem> for Diagnostic {
    fn from(found: FoundProblem) -> Self {
        Self {
            rule: found.rule,
            severity: if found.is_error { Severity::Error } else { Severity::Warning },
            message: found.message,
            hint: found.hint,
            file: found.file.into(),
            line: found.line,
            place: None,
            related: Vec::new(),
        }
    }
}

/// The longest frame that is read: what is longer is no frame.
const LONGEST: u32 = 1 << 30;

/// The bytes of a frame. What is in it is the engine's own: it cannot fail but for a payload that is too deep.
pub(crate) fn encode(head: &impl Serialize, payload: Option<&AnyPayload>) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; 4];
    let mut write = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    head.serialize(&mut write).map_err(|error| error.to_string())?;
    if let Some(payload) = payload {
        payload.serialize(&mut write).map_err(|error| error.to_string())?;
    }
    let length = u32::try_from(bytes.len() - 4).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or("It is larger than a gigabyte")?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Reads frames.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    from: R,
    frame: Vec<u8>,
    at: usize,
}

impl<R: Read> Reader<R> {
    pub(crate) const fn new(from: R) -> Self {
        Self { from, frame: Vec::new(), at: 0 }
    }

    /// The head of the next frame; `None`: the other side has ended.
    pub(crate) fn head<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut length = [0; 4];
        match self.from.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
        }
        self.frame.clear();
        let read = (&mut self.from).take(length.into()).read_to_end(&mut self.frame)?;
        if read < length as usize {
            return Ok(None);
        }
        let mut rest = self.frame.as_slice();
        let head = T::deserialize(&mut rmp_serde::Deserializer::new(&mut rest)).map_err(invalid)?;
        self.at = self.frame.len() - rest.len();
        Ok(Some(head))
    }

    /// The payload that follows the head of the frame.
    pub(crate) fn payload(&self, point: Point) -> io::Result<AnyPayload> {
        AnyPayload::read(point, &mut rmp_serde::Deserializer::new(&self.frame[self.at..])).map_err(invalid)
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::{Number, Value};

    use super::*;
    use crate::hooks::{ModelRequestPayload, Payload as _};

    fn values() -> impl Strategy<Value = Value> {
        let number = any::<f64>().prop_filter_map("JSON has no infinity", Number::from_f64);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            number.prop_map(Value::Number),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_a_frame_holds_comes_back_as_it_went(serial: u64, values in prop::collection::vec(values(), 0..4)) {
            let message = values.into_iter().enumerate().map(|(index, value)| (format!("k{}", 9 - index), value));
            let payload = ModelRequestPayload::new("s", vec![Arc::new(message.collect())]);
            let given = payload.into_any();
            let bytes = encode(&Order::Cancel { serial }, Some(&given)).unwrap();
            let mut reader = Reader::new(bytes.as_slice());
            let Some(Order::Cancel { serial: read }) = reader.head().unwrap() else { panic!("another order") };
            prop_assert_eq!(read, serial);
            let read = reader.payload(given.point()).unwrap();
            // The text shows the order of keys, and each number to its last bit.
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), serde_json::to_string(&given).unwrap());
            prop_assert!(reader.head::<Order>().unwrap().is_none());
        }

        #[test]
        fn bytes_that_are_no_frame_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(bytes.as_slice());
            while let Ok(Some(_)) = reader.head::<Order>() {
                let _ = reader.payload(Point::ModelRequest);
            }
        }
    }
}
