//! Tracks and events as packets of Perfetto.

use crate::assemble::{COUNTED, Category, Event, Track, Tracks, Value};
use crate::perfetto::{
    ChildTracksOrdering, CounterDescriptor, DebugAnnotation, EventType, InternedData, InternedName,
    SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, Trace, TracePacket, TrackDescriptor, TrackEvent,
};
use prost::Message;
use std::collections::BTreeMap;

/// The one sequence of packets.
const SEQUENCE: u32 = 1;

/// The bytes of a trace file, and the number of its slices, instants and values.
pub(crate) fn encode(tracks: &Tracks) -> (u64, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut write = |packet: TracePacket| {
        // Files one after the other are one file, so packets are encoded one by one.
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        Trace { packet: vec![packet] }.encode(&mut bytes).expect("a vector has room");
    };
    let argument_names = argument_names(tracks);
    write(TracePacket {
        sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
        interned_data: Some(interned(tracks, &argument_names)),
        ..TracePacket::default()
    });
    for (number, track) in (1..).zip(&tracks.tracks) {
        write(TracePacket { track_descriptor: Some(descriptor(number, track)), ..TracePacket::default() });
    }
    for event in &tracks.events {
        write(TracePacket {
            timestamp: Some(event.at),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            track_event: Some(track_event(tracks, event, &argument_names)),
            ..TracePacket::default()
        });
    }
    let events = tracks.events.iter().filter(|event| event.r#type != EventType::SliceEnd).count();
    (events as u64, bytes)
}

/// Names of arguments, with their numbers.
fn argument_names(tracks: &Tracks) -> BTreeMap<&'static str, u64> {
    let mut names = BTreeMap::new();
    for (name, _) in tracks.arguments.iter().flatten() {
        let next = names.len() as u64 + 1;
        names.entry(*name).or_insert(next);
    }
    names
}

fn interned(tracks: &Tracks, argument_names: &BTreeMap<&'static str, u64>) -> InternedData {
    let named = |(iid, name): (u64, &str)| InternedName { iid: Some(iid), name: Some(name.to_owned()) };
    let categories = Category::ALL.map(Category::name).into_iter().chain([COUNTED]);
    InternedData {
        event_categories: (1..).zip(categories).map(named).collect(),
        event_names: (1..).zip(tracks.names.iter().map(String::as_str)).map(named).collect(),
        debug_annotation_names: argument_names.iter().map(|(name, iid)| named((*iid, name))).collect(),
    }
}

fn descriptor(number: u64, track: &Track) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(number),
        name: Some(track.name.clone()),
        parent_uuid: track.parent.map(u64::from),
        counter: track.unit.map(|unit| CounterDescriptor { unit_name: Some(unit.to_owned()) }),
        child_ordering: track.parent.is_none().then_some(ChildTracksOrdering::Explicit as i32),
        sibling_order_rank: Some(number as i32),
    }
}

fn track_event(tracks: &Tracks, event: &Event, argument_names: &BTreeMap<&'static str, u64>) -> TrackEvent {
    let is_named = event.name.is_some();
    let category = Category::ALL.iter().position(|category| *category == event.category).expect("all are listed");
    let categories = [Some(category as u64 + 1), event.is_counted.then_some(Category::ALL.len() as u64 + 1)];
    let arguments = event.arguments.map_or(&[][..], |number| &tracks.arguments[number as usize]);
    let annotation = |(name, value): &(&'static str, Value)| {
        let empty = DebugAnnotation { name_iid: Some(argument_names[name]), ..DebugAnnotation::default() };
        match value {
            Value::Number(number) => DebugAnnotation { uint_value: Some(*number), ..empty },
            Value::Address(address) => DebugAnnotation { pointer_value: Some(*address), ..empty },
            Value::Text(text) => DebugAnnotation { string_value: Some(text.clone()), ..empty },
        }
    };
    TrackEvent {
        category_iids: if is_named { categories.into_iter().flatten().collect() } else { Vec::new() },
        debug_annotations: arguments.iter().map(annotation).collect(),
        r#type: Some(event.r#type as i32),
        name_iid: event.name.map(|name| u64::from(name) + 1),
        track_uuid: Some(event.track.into()),
        counter_value: (event.r#type == EventType::Counter).then_some(event.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tracks {
        let mut tracks = Tracks {
            tracks: vec![
                Track { name: "cores".into(), parent: None, unit: None },
                Track { name: "core 0".into(), parent: Some(1), unit: None },
                Track { name: "queue".into(), parent: None, unit: Some("entries") },
            ],
            names: vec!["system".into()],
            arguments: vec![vec![("line", Value::Address(0x40)), ("cause", Value::Text("log".into()))]],
            ..Tracks::default()
        };
        let event = |at, track, r#type| Event {
            at,
            track,
            r#type,
            category: Category::Stall,
            is_counted: true,
            name: None,
            arguments: None,
            value: 0,
        };
        let begin = Event { name: Some(0), arguments: Some(0), ..event(5, 2, EventType::SliceBegin) };
        let value = Event { value: 7, ..event(6, 3, EventType::Counter) };
        tracks.events = vec![begin, value, event(9, 2, EventType::SliceEnd)];
        tracks
    }

    #[test]
    fn a_file_is_one_message_with_all_packets() {
        let (events, bytes) = encode(&sample());
        assert_eq!(events, 2, "a slice and a value");
        let packets = Trace::decode(&bytes[..]).unwrap().packet;
        assert_eq!(packets.len(), 1 + 3 + 3);
        assert!(packets.iter().all(|packet| packet.trusted_packet_sequence_id == Some(SEQUENCE)));
        let names = packets[0].interned_data.as_ref().unwrap();
        assert_eq!(packets[0].sequence_flags, Some(SEQ_INCREMENTAL_STATE_CLEARED));
        let category = |iid| names.event_categories.iter().find(|c| c.iid == Some(iid)).unwrap().name.clone().unwrap();
        let begin = packets[4].track_event.as_ref().unwrap();
        assert_eq!((packets[4].timestamp, begin.track_uuid, begin.name_iid), (Some(5), Some(2), Some(1)));
        let categories: Vec<String> = begin.category_iids.iter().map(|&iid| category(iid)).collect();
        assert_eq!(categories, ["stall", COUNTED]);
        assert_eq!(begin.debug_annotations[0].pointer_value, Some(0x40));
        assert_eq!(begin.debug_annotations[1].string_value.as_deref(), Some("log"));
        let value = packets[5].track_event.as_ref().unwrap();
        assert_eq!((value.counter_value, value.r#type()), (Some(7), EventType::Counter));
        let end = packets[6].track_event.as_ref().unwrap();
        assert_eq!((end.r#type(), end.counter_value, end.name_iid), (EventType::SliceEnd, None, None));
    }

    #[test]
    fn tracks_name_their_parents_and_units() {
        let packets = Trace::decode(&encode(&sample()).1[..]).unwrap().packet;
        let of = |number: usize| packets[number].track_descriptor.as_ref().unwrap();
        assert_eq!((of(2).name.as_deref(), of(2).parent_uuid), (Some("core 0"), of(1).uuid));
        assert_eq!(of(3).counter.as_ref().unwrap().unit_name.as_deref(), Some("entries"));
        assert!(of(1).counter.is_none());
    }
}
