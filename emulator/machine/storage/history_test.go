package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// history is a server to which anything can happen, and what its volumes should
// hold all the while.
type history struct {
	*bench
	rnd  *rand.Rand
	held map[string][]byte // by WWN
	done map[string]int    // how often each kind of command was carried out
}

func (h *history) one(all []string) string { return all[h.rnd.IntN(len(all))] }

func (h *history) some(all []string, n int) []string {
	out := slices.Clone(all)
	h.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(n, len(out))]
}

// volumeID is one of the volumes, or one that is not there.
func (h *history) volumeID() string {
	c, _ := h.View().Controller("1")
	ids := []string{"0"}
	for _, v := range c.Volumes {
		ids = append(ids, v.ID, v.ID)
	}
	return h.one(ids)
}

// free are the bays with drives that a volume could have.
func (h *history) free() []string {
	c, _ := h.View().Controller("1")
	out := []string{}
	for _, d := range c.Drives {
		if d.State == DriveUnused {
			out = append(out, d.ID)
		}
	}
	return out
}

func (h *history) command() Command {
	types := []RAIDType{RAID0, RAID1, RAID5, RAID6, RAID10, RAID50, RAID60}
	all := bays(0, 10)
	shelf := h.View().Shelf()
	serial := ""
	if len(shelf) > 0 {
		serial = shelf[h.rnd.IntN(len(shelf))].Serial
	}
	switch h.rnd.IntN(23) {
	case 0, 1, 2:
		return CreateVolume{
			Controller: "1", Type: types[h.rnd.IntN(len(types))], Drives: h.some(h.free(), h.rnd.IntN(7)),
			Capacity: int64(h.rnd.IntN(3)) * 200_000, Strip: []int64{0, 16 << 10, 64 << 10}[h.rnd.IntN(3)],
			Method: []InitMethod{"", Foreground, Background}[h.rnd.IntN(3)],
		}
	case 3, 20, 21:
		return ExpandVolume{Controller: "1", Volume: h.volumeID(), Drives: h.some(h.free(), h.rnd.IntN(3)), Type: append(types, "")[h.rnd.IntN(8)]}
	case 4, 5, 6:
		return PullDrive{h.one(all)}
	case 7, 8, 9:
		return InsertDrive{Drive: h.one(all), What: InsertSame, Serial: serial}
	case 10:
		return InsertDrive{Drive: h.one(all), What: []Insertion{InsertNew, InsertForeign}[h.rnd.IntN(2)]}
	case 11:
		return FailDrive{h.one(all)}
	case 12, 13:
		return ReviveDrive{h.one(all)}
	case 14:
		return AssignSpare{Controller: "1", Drive: h.one(all), Volumes: h.some([]string{h.volumeID()}, h.rnd.IntN(2))}
	case 15, 16:
		return ImportForeign{Controller: "1"}
	case 17:
		return CheckConsistency{Controller: "1", Volume: h.volumeID()}
	case 18:
		return InitializeVolume{Controller: "1", Volume: h.volumeID()}
	case 19:
		c, _ := h.View().Controller("1")
		spares := []string{"none"}
		for _, d := range c.Drives {
			if d.Spare != "" {
				spares = append(spares, d.ID)
			}
		}
		return UnassignSpare{Controller: "1", Drive: h.one(spares)}
	}
	return []Command{
		DeleteVolume{Controller: "1", Volume: h.volumeID()}, SecureErase{Drive: h.one(all)}, ClearForeign{Controller: "1"},
		DiscardDrive{serial},
	}[h.rnd.IntN(4)]
}

// step does something, twice if the rack is killed before it has stored it.
func (h *history) step(what func() error) {
	before, on := h.State(), h.on
	err := what()
	if err == nil && h.rnd.IntN(4) == 0 {
		h.Restore(on, before)
		if again := what(); again != nil {
			h.Fatalf("the second time: %v", again)
		}
	}
	if h.rnd.IntN(10) == 0 {
		h.restart()
	}
}

// look compares what volumes hold with what they should.
func (h *history) look(after any) {
	h.Helper()
	c, _ := h.View().Controller("1")
	seen := map[string]bool{}
	for _, v := range c.Volumes {
		seen[v.WWN] = true
		if v.Failed || slices.ContainsFunc(v.Ops, func(o Op) bool { return o.Saved }) {
			continue
		}
		vol, err := v.Open(h.Drive)
		if err != nil {
			h.Fatalf("after %T%+v: volume %s: %v", after, after, v.ID, err)
		}
		got := make([]byte, vol.Size())
		if _, err := vol.ReadAt(got, 0); err != nil {
			h.Fatalf("after %T%+v: volume %s: %v", after, after, v.ID, err)
		}
		want, known := h.held[v.WWN]
		if init, ok := after.(InitializeVolume); ok && init.Volume == v.ID {
			want = make([]byte, len(got))
		}
		want = append(want, make([]byte, max(0, len(got)-len(want)))...) // what has come to it is zeros
		if known && !bytes.Equal(got, want) {
			i := 0
			for got[i] == want[i] {
				i++
			}
			h.Fatalf("after %T%+v: volume %s (%+v) holds %#x at %d of %d, want %#x", after, after, v.ID, v.Array, got[i], i, len(got), want[i])
		}
		h.held[v.WWN] = got
	}
	for wwn := range h.held {
		if !seen[wwn] {
			delete(h.held, wwn)
		}
	}
}

// write writes something somewhere.
func (h *history) write() {
	c, _ := h.View().Controller("1")
	for _, v := range c.Volumes {
		if !v.Usable() || h.rnd.IntN(2) == 0 {
			continue
		}
		vol, err := v.Open(h.Drive)
		if err != nil {
			h.Fatal(err)
		}
		off := h.rnd.Int64N(vol.Size())
		p := pattern(min(h.rnd.Int64N(300_000), vol.Size()-off), byte(h.rnd.Uint32()))
		if _, err := vol.WriteAt(p, off); err != nil {
			h.Fatal(err)
		}
		copy(h.held[v.WWN][off:], p)
	}
}

// After any sequence of commands to drives and volumes, a readable volume has the
// bytes that were written to it, also when the rack is killed in between.
func TestVolumesKeepTheirBytesThroughAnything(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			b := newBench(t)
			small := disk
			small.Capacity = 640 << 10
			var err error
			if b.Subsystem, err = New(testServer(small), true, nil); err != nil {
				t.Fatal(err)
			}
			h := &history{bench: b, rnd: rand.New(rand.NewPCG(seed, 2)), held: map[string][]byte{}, done: total}
			for range 400 {
				switch n := h.rnd.IntN(10); {
				case n < 6:
					c := h.command()
					var err error
					h.step(func() error {
						var evs []event.Event
						evs, err = h.Apply(h.now, c)
						h.hear(evs)
						if err == nil {
							total[fmt.Sprintf("%T", c)]++
						} else if !expected(err) {
							h.Fatalf("%T%+v = %v", c, c, err)
						}
						return err
					})
					if err != nil {
						c = nil
					}
					h.look(c)
				case n < 7:
					on := h.rnd.IntN(4) > 0
					h.step(func() error { h.hear(h.Power(h.now, on)); return nil })
					h.look(on)
				case n < 9:
					h.now = h.now.Add(time.Duration(h.rnd.IntN(30)) * time.Second)
					h.step(func() error { h.hear(h.Advance(h.now)); return nil })
					h.look(h.now)
				default:
					h.write()
				}
			}
		})
	}
	for _, c := range []Command{
		CreateVolume{}, ExpandVolume{}, PullDrive{}, InsertDrive{}, FailDrive{}, ReviveDrive{}, AssignSpare{}, ImportForeign{},
		CheckConsistency{}, InitializeVolume{}, DeleteVolume{}, SecureErase{}, ClearForeign{}, DiscardDrive{}, UnassignSpare{},
	} {
		if total[fmt.Sprintf("%T", c)] < 2 {
			t.Errorf("%T was carried out %d times: this test does not test it", c, total[fmt.Sprintf("%T", c)])
		}
	}
}

func expected(err error) bool {
	for _, e := range []error{ErrNotFound, ErrPower, ErrBusy, ErrState, ErrUnsupported, ErrRule} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
