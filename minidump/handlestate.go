package minidump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Kinds of object information, the public MINIDUMP_HANDLE_OBJECT_INFORMATION_TYPE.
const (
	infoThread1 = iota + 1
	infoMutant1
	infoMutant2
	infoProcess1
	infoProcess2
	infoEvent1
	infoSection1
	infoSemaphore1
)

// statusPending is STILL_ACTIVE, the exit status of what has not ended.
const statusPending = 0x103

// objectState reads the records of a handle. Their layouts are not documented; by
// their sizes they are what the system's queries of the objects give, which are
// (winternl.h, and the native API's public headers): THREAD_BASIC_INFORMATION,
// MUTANT_BASIC_INFORMATION, MUTANT_OWNER_INFORMATION, PROCESS_BASIC_INFORMATION and
// its extended form, EVENT_BASIC_INFORMATION, SEMAPHORE_BASIC_INFORMATION. A record of
// another size, or with values that these cannot have, is left alone.
func objectState(infos []dump.HandleInfo) *dump.ObjectState {
	s, any := &dump.ObjectState{}, false
	for i := range infos {
		c := cursor.New(infos[i].Data, "object information of a handle", -1)
		any = readState(s, infos[i].Kind, len(infos[i].Data), c) || any
	}
	if !any {
		return nil
	}
	return s
}

func readState(s *dump.ObjectState, kind uint32, size int, c *cursor.Cursor) bool {
	switch kind {
	case infoThread1:
		return threadState(s, size, c)
	case infoProcess1, infoProcess2:
		return processState(s, size, c)
	case infoMutant1:
		count, flags := int32(c.U32()), c.U32()
		abandoned := flags >> 8 & 0xff
		if size != 8 || count > 1 || abandoned > 1 {
			return false
		}
		s.Mutex = &dump.MutexState{Count: count, Abandoned: abandoned == 1}
	case infoMutant2:
		id, ok := clientID(c, size/2)
		if ok = ok && (size == 8 || size == 16); ok {
			s.Owner = &id
		}
		return ok
	case infoEvent1:
		kind, set := c.U32(), c.U32()
		if size != 8 || kind > 1 || set > 1 {
			return false
		}
		s.Event = &dump.EventState{Manual: kind == 0, Set: set == 1}
	case infoSemaphore1:
		count, limit := int32(c.U32()), int32(c.U32())
		if size != 8 || count < 0 || limit <= 0 || count > limit {
			return false
		}
		s.Semaphore = &dump.SemaphoreState{Count: count, Max: limit}
	default:
		return false
	}
	return true
}

// threadState reads THREAD_BASIC_INFORMATION.
func threadState(s *dump.ObjectState, size int, c *cursor.Cursor) bool {
	pointer := 8
	switch size {
	case 48:
	case 28:
		pointer = 4
	default:
		return false
	}
	exit := c.U32()
	c.Skip(pointer - 4)
	teb := c.Pointer(pointer)
	id, ok := clientID(c, pointer)
	if !ok {
		return false
	}
	s.Thread, s.TEB, s.Exited = &id, teb, exit != statusPending
	return true
}

// processState reads PROCESS_BASIC_INFORMATION, which the extended form has behind its
// size.
func processState(s *dump.ObjectState, size int, c *cursor.Cursor) bool {
	pointer := 8
	switch size {
	case 48, 64:
	case 24, 32:
		pointer = 4
	default:
		return false
	}
	if extended := size == 64 || size == 32; extended && c.Pointer(pointer) > uint64(size) {
		return false
	}
	exit := c.U32()
	c.Skip(pointer - 4 + 3*pointer) // PEB, affinity, priority
	pid := c.Pointer(pointer)
	if pid == 0 || pid > 0xffffffff || pid&3 != 0 {
		return false
	}
	s.ProcessID, s.Exited = new(uint32), exit != statusPending
	*s.ProcessID = uint32(pid)
	return true
}

// clientID reads a CLIENT_ID. Ids are multiples of 4.
func clientID(c *cursor.Cursor, pointer int) (dump.ClientID, bool) {
	if pointer != 4 && pointer != 8 {
		return dump.ClientID{}, false
	}
	pid, tid := c.Pointer(pointer), c.Pointer(pointer)
	ok := pid != 0 && tid != 0 && pid <= 0xffffffff && tid <= 0xffffffff && pid&3 == 0 && tid&3 == 0
	return dump.ClientID{Process: uint32(pid), Thread: uint32(tid)}, ok
}
