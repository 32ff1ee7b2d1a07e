package bmc

import (
	"fmt"
	"time"
)

// Transfer is how an image is transferred; the values are Redfish's (DSP2046,
// VirtualMedia.TransferMethod), zero means Upload.
type Transfer string

// The methods. The image is read completely with both, so that a streamed one
// depends on its server no longer than an uploaded one.
const (
	Stream Transfer = "Stream"
	Upload Transfer = "Upload"
)

// InsertMedia inserts an image into a slot. The slot shows the image once it is
// fetched; until then it is in use.
type InsertMedia struct {
	Slot           string
	Image          string // URL
	WriteProtected bool
	User, Password string // for the image's server
	Transfer       Transfer
}

func (c InsertMedia) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Image != "" {
		return nil, fmt.Errorf("%w: media slot %s", ErrInUse, c.Slot)
	}
	if !b.net().Media.On {
		return nil, fmt.Errorf("%w: virtual media", ErrDisabled)
	}
	m := b.forkMedia()
	m.Fetches++
	in := Slot{
		ID: c.Slot, Image: c.Image, WriteProtected: c.WriteProtected,
		User: c.User, Password: c.Password, Fetch: m.Fetches, Since: now, Transfer: c.Transfer, Verify: s.Verify, EjectAfterBoots: s.EjectAfterBoots,
	}
	b.setSlot(in)
	return []Event{MediaRequested{At: now, Slot: in}}, nil
}

// MediaFetched answers MediaRequested: the image was fetched.
type MediaFetched struct {
	Slot  string
	Fetch uint64 // number of the fetch, as the event has it
	Size  int64  // bytes
}

func (c MediaFetched) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil || s.Fetch != c.Fetch || s.Image == "" {
		return nil, fmt.Errorf("%w: fetch %d of media slot %s", ErrNotFound, c.Fetch, c.Slot)
	}
	in := *s
	in.Inserted, in.Size = true, c.Size
	b.setSlot(in)
	return []Event{MediaInserted{At: now, Slot: c.Slot, Image: in.Image}}, nil
}

// MediaFetchFailed answers MediaRequested: the image cannot be fetched. The
// slot is empty again.
type MediaFetchFailed struct {
	Slot  string
	Fetch uint64
}

func (c MediaFetchFailed) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil || s.Fetch != c.Fetch {
		return nil, fmt.Errorf("%w: fetch %d of media slot %s", ErrNotFound, c.Fetch, c.Slot)
	}
	return b.empty(s, now), nil
}

// VerifyMedia says whether the servers of a slot's images must have a
// certificate that the BMC trusts.
type VerifyMedia struct {
	Slot   string
	Verify bool
}

func (c VerifyMedia) apply(b *BMC, _ time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Verify != c.Verify {
		to := *s
		to.Verify = c.Verify
		b.setSlot(to)
	}
	return nil, nil
}

// EjectMediaAfterBoots ejects a slot's image after that many starts of the
// machine; 0 cancels it. It applies to an image that is inserted before then,
// too.
type EjectMediaAfterBoots struct {
	Slot  string
	Boots int
}

func (c EjectMediaAfterBoots) apply(b *BMC, _ time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.EjectAfterBoots != c.Boots {
		to := *s
		to.EjectAfterBoots = c.Boots
		b.setSlot(to)
	}
	return nil, nil
}

// countBoot counts a start of the machine, and ejects the images that are due.
func (b *BMC) countBoot(now time.Time) []Event {
	var evs []Event
	for _, s := range b.st.Media.Slots {
		if s.EjectAfterBoots == 0 {
			continue
		}
		s.EjectAfterBoots--
		b.setSlot(s)
		if s.EjectAfterBoots == 0 && s.Image != "" {
			evs = append(evs, b.empty(&s, now)...)
		}
	}
	return evs
}

// EjectMedia empties a slot; an empty slot is no error.
type EjectMedia struct{ Slot string }

func (c EjectMedia) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Image == "" {
		return nil, nil
	}
	return b.empty(s, now), nil
}

func (b *BMC) empty(s *Slot, now time.Time) []Event {
	ev := MediaEjected{At: now, Slot: s.ID, Fetch: s.Fetch}
	b.setSlot(Slot{ID: s.ID, Verify: s.Verify, Since: now})
	return []Event{ev}
}

// MediaRequested asks for the image of a slot to be fetched.
type MediaRequested struct {
	At   time.Time
	Slot Slot // with password
}

// MediaInserted reports that the machine can read the image.
type MediaInserted struct {
	At          time.Time
	Slot, Image string
}

// MediaEjected reports that the machine can no longer read the image.
type MediaEjected struct {
	At    time.Time
	Slot  string
	Fetch uint64 // number of the fetch that filled it
}

// Time implements Event.
func (e MediaRequested) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaInserted) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaEjected) Time() time.Time { return e.At }

// MediaFault is why an image could not be fetched; zero: unspecified.
type MediaFault string

// The faults.
const (
	Unreachable MediaFault = "unreachable" // no connection
	Absent      MediaFault = "absent"      // the server does not have the image
	Denied      MediaFault = "denied"      // wrong or missing credentials
	Protocol    MediaFault = "protocol"    // the server uses another protocol
	Format      MediaFault = "format"      // not an image
)

// MediaError is an ErrMedia with a known fault.
type MediaError struct {
	Fault MediaFault
	Err   error // without credentials
}

// Error implements error.
func (e *MediaError) Error() string {
	return ErrMedia.Error() + ": " + string(e.Fault) + ": " + e.Err.Error()
}

// Unwrap makes it an ErrMedia too.
func (e *MediaError) Unwrap() []error { return []error{ErrMedia, e.Err} }
