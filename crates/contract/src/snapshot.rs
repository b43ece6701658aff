//! The binary form of a design's state in a snapshot of the machine: postcard, one value and nothing after it.

use crate::SpecError;
use serde::{Serialize, de::DeserializeOwned};

/// Encodes the state of a design.
///
/// # Panics
/// If the state holds something that has no binary form, which plain data never does.
pub fn to_bytes<T: Serialize + ?Sized>(state: &T) -> Vec<u8> {
    postcard::to_stdvec(state).expect("plain data has a binary form")
}

/// Decodes what [`to_bytes`] wrote.
///
/// # Errors
/// Bytes that are not a state of this type, truncated, or followed by others.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SpecError> {
    match postcard::take_from_bytes(bytes) {
        Ok((state, [])) => Ok(state),
        Ok((_, rest)) => Err(refuse(format!("{} bytes follow it", rest.len()))),
        Err(e) => Err(refuse(e.to_string())),
    }
}

/// The refusal of a snapshot whose state does not fit the parameters of the design or the shape of the machine.
pub fn refuse(problem: impl std::fmt::Display) -> SpecError {
    SpecError::new("", format!("the snapshot does not hold a state of this design: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, LineTag, Message, Node, Origin, Payload, Token};
    use durasim_types::{Cause, CoreId, PhysAddr};

    #[test]
    fn what_is_encoded_is_what_is_decoded() {
        let actions = vec![
            Action::Append {
                from: Origin::Llc,
                at: PhysAddr(64),
                payload: Payload::masked(&[7; 64], 0xff00),
                cause: Cause::Log,
                token: Some(Token(3)),
            },
            Action::Send {
                from: Node::Controller(1),
                to: Node::Core(CoreId(2)),
                message: Message { kind: 1, a: 2, b: 3 },
                size_bytes: 8,
            },
        ];
        let bytes = to_bytes(&(&actions, LineTag(9)));
        assert_eq!(from_bytes::<(Vec<Action>, LineTag)>(&bytes), Ok((actions, LineTag(9))));
    }

    #[test]
    fn anything_else_is_refused() {
        let bytes = to_bytes(&(1u64, vec![2u64, 3]));
        for cut in 0..bytes.len() {
            assert!(from_bytes::<(u64, Vec<u64>)>(&bytes[..cut]).is_err(), "cut to {cut} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        let refusal = from_bytes::<(u64, Vec<u64>)>(&longer).unwrap_err();
        assert_eq!(refusal.problem, "the snapshot does not hold a state of this design: 1 bytes follow it");
        assert!(from_bytes::<Token>(&[0xff; 20]).is_err());
    }
}
