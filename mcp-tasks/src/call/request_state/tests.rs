//! 2026-07-28, "Multi Round-Trip Requests", "Server Requirements": a `requestState` is the attacker's until it is verified.

use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(300);
const STATE: &[u8] = br#"{"id":"task","ledger":[],"open":[]}"#;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A key as an operator writes it.
fn key(byte: u8) -> String {
    STANDARD.encode([byte; KEY_BYTES])
}

fn codec(keys: &[u8]) -> RequestStateCodec {
    let keys: Vec<_> = keys.iter().map(|byte| key(*byte)).collect();
    RequestStateCodec::new(&SealingKeys::parse(&keys.join(",")).unwrap(), TTL)
}

fn arguments(name: &str) -> Fingerprint {
    Fingerprint::of("arguments", "", Some(&serde_json::json!({ "name": name })))
}

fn alice() -> Principal {
    Principal::new("alice").with_issuer("https://id.example")
}

fn binding(principal: Option<&Principal>) -> Binding<'_> {
    Binding {
        principal,
        method: "tools/call",
        tool: "encode",
        arguments: arguments("a"),
    }
}

/// A token of Alice's, sealed at instant 1,000.
fn token(codec: &RequestStateCodec) -> String {
    codec.seal(&binding(Some(&alice())), at(1_000), STATE).unwrap()
}

fn opens(codec: &RequestStateCodec, token: &str) -> bool {
    codec.open(&binding(Some(&alice())), at(1_000), token).is_some()
}

#[test]
fn what_was_sealed_opens_and_says_when_it_expires() {
    let codec = codec(&[1]);
    for state in [&b""[..], b"x", STATE, &[0; 10_000]] {
        let token = codec.seal(&binding(None), at(1_000), state).unwrap();
        assert!(
            token
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
        );
        let opened = codec.open(&binding(None), at(1_000), &token);
        assert_eq!(opened, Some((state.to_vec(), at(301_000))));
    }
}

#[test]
fn the_same_state_never_gives_the_same_token_and_a_token_does_not_show_its_state() {
    let codec = codec(&[1]);
    let (one, other) = (token(&codec), token(&codec));
    assert_ne!(one, other);
    let bytes = URL_SAFE_NO_PAD.decode(one).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"ledger"));
}

#[test]
fn a_token_with_any_one_character_changed_does_not_open() {
    let codec = codec(&[1]);
    let token = token(&codec);
    for at in 0..token.len() {
        for replacement in [b'A', b'B', b'Q', b'g', b'w', b'_', b'=', b'+', b' '] {
            let mut changed = token.clone().into_bytes();
            if changed[at] == replacement {
                continue;
            }
            changed[at] = replacement;
            let changed = String::from_utf8(changed).unwrap();
            assert!(
                !opens(&codec, &changed),
                "character {at} as {}",
                char::from(replacement)
            );
        }
    }
}

/// Base64 leaves bits over in its last character. A token has one form only, or it could be used twice.
#[test]
fn a_token_has_one_form_only() {
    let codec = codec(&[1]);
    let lenient = GeneralPurpose::new(
        &alphabet::URL_SAFE,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    for length in 0..3 {
        let token = codec
            .seal(&binding(Some(&alice())), at(1_000), &STATE[length..])
            .unwrap();
        let last = token.len() - 1;
        for c in (b'0'..=b'z').filter(u8::is_ascii_alphanumeric) {
            let other = format!("{}{}", &token[..last], char::from(c));
            let same_bytes = lenient.decode(&other).ok() == lenient.decode(&token).ok();
            assert!(other == token || !opens(&codec, &other), "{same_bytes}");
        }
        for other in [
            format!("{token}="),
            format!("{token}\n"),
            format!(" {token}"),
            format!("{token}A"),
        ] {
            assert!(!opens(&codec, &other));
        }
    }
}

#[test]
fn a_token_cut_short_does_not_open() {
    let codec = codec(&[1]);
    let token = token(&codec);
    for end in 0..token.len() {
        assert!(!opens(&codec, &token[..end]), "{end}");
        assert!(!opens(&codec, &token[end + 1..]), "{end}");
    }
}

#[test]
fn two_tokens_spliced_do_not_open() {
    let codec = codec(&[1]);
    let (one, other) = (token(&codec), token(&codec));
    for cut in 1..one.len() {
        let spliced = format!("{}{}", &one[..cut], &other[cut..]);
        assert!(spliced == one || spliced == other || !opens(&codec, &spliced), "{cut}");
    }
}

#[test]
fn a_token_is_good_for_its_own_caller_method_tool_and_arguments_only() {
    let codec = codec(&[1]);
    let token = token(&codec);
    let alice = alice();
    let own = || binding(Some(&alice));
    assert!(codec.open(&own(), at(1_000), &token).is_some());

    let bob = Principal::new("bob").with_issuer("https://id.example");
    let elsewhere = Principal::new("alice").with_issuer("https://other.example");
    let nowhere = Principal::new("alice");
    let moved = Principal::new("https://id.example").with_issuer("alice");
    let joined = Principal::new("ealice").with_issuer("https://id.exampl");
    for principal in [&bob, &elsewhere, &nowhere, &moved, &joined] {
        assert!(
            codec.open(&binding(Some(principal)), at(1_000), &token).is_none(),
            "{principal:?}"
        );
    }
    assert!(codec.open(&binding(None), at(1_000), &token).is_none());
    let others = [
        Binding { tool: "encod", ..own() },
        Binding {
            tool: "encode2",
            ..own()
        },
        Binding {
            method: "prompts/get",
            ..own()
        },
        Binding {
            method: "tools/callencode",
            tool: "",
            ..own()
        },
        Binding {
            arguments: arguments("b"),
            ..own()
        },
    ];
    for other in others {
        assert!(codec.open(&other, at(1_000), &token).is_none(), "{other:?}");
    }
}

/// A subject is bound together with its issuer; what else was kept about it may change between two rounds.
#[test]
fn a_refreshed_login_of_the_same_principal_opens_its_token() {
    let codec = codec(&[1]);
    let refreshed = alice().with_claims(serde_json::from_str(r#"{"email":"a@b"}"#).unwrap());
    assert!(
        codec
            .open(&binding(Some(&refreshed)), at(1_000), &token(&codec))
            .is_some()
    );
}

#[test]
fn a_token_is_good_through_the_very_instant_of_its_expiry() {
    let codec = codec(&[1]);
    let token = token(&codec);
    let open = |now| codec.open(&binding(Some(&alice())), at(now), &token).is_some();
    assert!(open(0) && open(300_999) && open(301_000));
    assert!(!open(301_001) && !open(u64::MAX));
}

#[test]
fn a_token_of_the_end_of_time_does_not_overflow() {
    let codec = codec(&[1]);
    let token = codec.seal(&binding(None), at(u64::MAX - 1), STATE).unwrap();
    assert!(codec.open(&binding(None), at(u64::MAX - 1), &token).is_some());
}

#[test]
fn a_token_of_another_key_does_not_open() {
    assert!(!opens(&codec(&[2]), &token(&codec(&[1]))));
    let ephemeral = || RequestStateCodec::ephemeral(TTL).unwrap();
    assert!(!opens(&ephemeral(), &token(&ephemeral())));
}

#[test]
fn while_keys_are_rotated_every_key_opens_and_the_newest_seals() {
    let (before, during, after) = (codec(&[1]), codec(&[2, 1]), codec(&[2]));
    assert!(opens(&during, &token(&before)));
    assert!(opens(&after, &token(&during)), "sealed by the newest");
    assert!(!opens(&before, &token(&during)));
    assert!(!opens(&after, &token(&before)), "the old key is gone");
}

#[test]
fn what_is_no_token_does_not_open() {
    let codec = codec(&[1]);
    for text in ["", "A", "null", "{}", "AQ", "\u{1f980}", "..", "AQAAAAA", "%41", "\0"] {
        assert!(!opens(&codec, text), "{text:?}");
    }
    // The right version and key, and nothing else.
    let start = [&[VERSION][..], &codec.keys[0].id].concat();
    for length in 0..100 {
        let token = [&start[..], &vec![0; length]].concat();
        assert!(!opens(&codec, &URL_SAFE_NO_PAD.encode(token)), "{length}");
    }
}

#[test]
fn a_token_longer_than_any_is_refused_before_it_is_looked_at() {
    let codec = codec(&[1]);
    // Were it decoded first, a character that is not base64 at the very end would cost as much.
    let long = "A".repeat(1 << 20);
    let start = std::time::Instant::now();
    for _ in 0..10_000 {
        assert!(!opens(&codec, &long));
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_state_fits_a_token_or_is_refused_when_it_is_sealed() {
    let codec = codec(&[1]);
    let most = MOST_CHARACTERS / 4 * 3 - 128;
    let token = codec.seal(&binding(None), at(0), &vec![7; most]).unwrap();
    assert!(token.len() <= MOST_CHARACTERS);
    assert!(codec.open(&binding(None), at(0), &token).is_some());
    let error = codec.seal(&binding(None), at(0), &vec![7; most + 1]).unwrap_err();
    assert!(matches!(error, SealError::TooLarge), "{error}");
}

#[test]
fn a_key_is_read_in_either_alphabet_with_or_without_padding() {
    // Bytes whose base64 has `+` and `/`, which the other alphabet writes `-` and `_`.
    let bytes = [0xfb; KEY_BYTES];
    let (standard, url) = (STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes));
    assert_ne!(standard.trim_end_matches('='), url);
    for written in [
        standard.clone(),
        url.clone(),
        format!("{url}="),
        format!("  {standard}\n"),
    ] {
        let codec = RequestStateCodec::new(&SealingKeys::parse(&written).unwrap(), TTL);
        let sealed = RequestStateCodec::new(&SealingKeys::parse(&standard).unwrap(), TTL);
        assert!(opens(&codec, &token(&sealed)), "{written}");
    }
}

#[test]
fn a_key_that_is_not_one_is_named_by_its_place_and_not_shown() {
    let short = STANDARD.encode([0x5a; KEY_BYTES - 1]);
    let long = STANDARD.encode([0x5a; KEY_BYTES + 1]);
    for wrong in [
        &*short,
        &*long,
        "",
        "correct-horse",
        "WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWl",
    ] {
        for (keys, place) in [(wrong.to_owned(), 1), (format!("{},{wrong}", key(1)), 2)] {
            let error = SealingKeys::parse(&keys).unwrap_err();
            assert!(error.contains(&format!("key {place}")), "{error}");
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
            assert!(!error.contains(&key(1)), "{error}");
        }
    }
}

#[test]
fn neither_the_codec_nor_its_tokens_show_a_key() {
    let codec = codec(&[0x41]);
    let shown = format!("{codec:?}");
    assert!(!shown.contains(&key(0x41)) && !shown.contains("65"), "{shown}");
    let bytes = URL_SAFE_NO_PAD.decode(token(&codec)).unwrap();
    assert!(!bytes.windows(4).any(|window| window == [0x41; 4]));
}

#[derive(Debug, Clone)]
enum Change {
    Flip {
        at: prop::sample::Index,
        bit: u8,
    },
    Truncate {
        at: prop::sample::Index,
    },
    Swap {
        one: prop::sample::Index,
        other: prop::sample::Index,
    },
    Insert {
        at: prop::sample::Index,
        byte: u8,
    },
    Splice {
        at: prop::sample::Index,
    },
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let index = any::<prop::sample::Index>;
    let change = prop_oneof![
        (index(), 0..8_u8).prop_map(|(at, bit)| Change::Flip { at, bit }),
        index().prop_map(|at| Change::Truncate { at }),
        (index(), index()).prop_map(|(one, other)| Change::Swap { one, other }),
        (index(), any::<u8>()).prop_map(|(at, byte)| Change::Insert { at, byte }),
        index().prop_map(|at| Change::Splice { at }),
    ];
    prop::collection::vec(change, 1..4)
}

fn apply(bytes: &mut Vec<u8>, change: &Change, donor: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match change {
        Change::Flip { at, bit } => bytes[at.index(length)] ^= 1 << bit,
        Change::Truncate { at } => bytes.truncate(at.index(length)),
        Change::Swap { one, other } => bytes.swap(one.index(length), other.index(length)),
        Change::Insert { at, byte } => bytes.insert(at.index(length), *byte),
        Change::Splice { at } => {
            let at = at.index(length.min(donor.len()));
            bytes.truncate(at);
            bytes.extend_from_slice(&donor[at..]);
        }
    }
}

proptest! {
    /// Whatever is done to a token's bytes: it is one of the two that were made, or it does not open.
    #[test]
    fn only_what_was_sealed_opens(changes in changes(), state in prop::collection::vec(any::<u8>(), 0..200)) {
        let codec = codec(&[1]);
        let alice = alice();
        let binding = binding(Some(&alice));
        let token = codec.seal(&binding, at(1_000), &state).unwrap();
        let donor = codec.seal(&binding, at(1_000), b"another").unwrap();
        let (original, donor) = (URL_SAFE_NO_PAD.decode(token).unwrap(), URL_SAFE_NO_PAD.decode(donor).unwrap());
        let mut bytes = original.clone();
        for change in &changes {
            apply(&mut bytes, change, &donor);
        }
        let opened = codec.open(&binding, at(1_000), &URL_SAFE_NO_PAD.encode(&bytes));
        if bytes == original {
            prop_assert_eq!(opened.map(|(state, _)| state), Some(state));
        } else if bytes == donor {
            prop_assert_eq!(opened.map(|(state, _)| state), Some(b"another".to_vec()));
        } else {
            prop_assert_eq!(opened, None);
        }
    }

    #[test]
    fn arbitrary_text_never_opens_and_never_panics(text in ".*") {
        prop_assert!(!opens(&codec(&[1]), &text));
    }
}
