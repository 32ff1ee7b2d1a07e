package ipmi_test

import (
	"net"
	"sync"
)

func checked(b []byte) []byte {
	var sum byte
	for _, x := range b {
		sum -= x
	}
	return append(b, sum)
}

// area returns a FRU area of its first bytes, without the length, and its fields.
func area(begin []byte, fields ...string) []byte {
	out := append([]byte{begin[0], 0}, begin[1:]...)
	for _, f := range fields {
		out = append(append(out, 0xC0|byte(len(f))), f...)
	}
	out = append(out, 0xC1)
	for (len(out)+1)%8 != 0 {
		out = append(out, 0)
	}
	out[1] = byte((len(out) + 1) / 8)
	return checked(out)
}

func serverFRU() []byte {
	chassis := area([]byte{1, 0x17}, "CH-1", "CHASSIS1")
	board := area([]byte{1, 0x19, 1, 2, 3}, "Boards Inc", "Mainboard", "BOARD1", "P1")
	product := area([]byte{1, 0x19}, "Contoso", "C3500", "PN1", "A1", "SN1234", "tag")
	at := 8
	head := []byte{1, 0, byte(at / 8), byte((at + len(chassis)) / 8), byte((at + len(chassis) + len(board)) / 8), 0, 0}
	out := checked(head)
	out = append(append(append(out, chassis...), board...), product...)
	return append(out, make([]byte, 64)...)
}

// full returns a full sensor record: y = (m·x + b·10^bExp)·10^rExp.
func full(id, number byte, units, unit, linear byte, m, b int8, exps byte, name string) []byte {
	r := make([]byte, 48)
	r[0], r[2], r[3] = id, 0x51, 0x01
	r[5], r[7], r[8], r[13] = 0x20, number, 7, 0x01
	r[12] = 0x01
	r[20], r[21], r[23] = units, unit, linear
	r[24], r[25] = byte(m), byte(uint16(int16(m))>>8)<<6
	r[26], r[27] = byte(b), byte(uint16(int16(b))>>8)<<6
	r[29] = exps
	r[47] = 0xC0 | byte(len(name))
	r = append(r, name...)
	r[4] = byte(len(r) - 5)
	return r
}

func serverSDR() [][]byte {
	compact := make([]byte, 32)
	compact[2], compact[3], compact[5], compact[7], compact[13] = 0x51, 0x02, 0x20, 9, 0x6F
	compact[31] = 0xC0 | 4
	compact = append(compact, "Door"...)
	compact[4] = byte(len(compact) - 5)
	other := full(6, 1, 0x80, 1, 0, 1, 0, 0, "ME Temp")
	other[5] = 0x2C
	return [][]byte{
		full(1, 1, 0x80, 1, 0, 5, 0, 0xF0, "Inlet Temp"),  // 5·x·10^-1: 2Bh is 21.5
		full(2, 2, 0x80, 1, 0, 1, 9, 0x00, "Outlet Temp"), // two's complement: F6h is -10, +9
		full(3, 3, 0x00, 18, 0, 100, 0, 0x00, "Fan 1"),
		full(4, 4, 0x01, 0, 0, 1, 0, 0x00, "Load"),
		compact,
		other,
		{7, 0, 0x51, 0x12, 3, 0, 0, 0}, // a locator
	}
}

// wire is a socket that can lose, delay or damage answers.
type wire struct {
	*net.UDPConn

	mu      sync.Mutex
	out     func([]byte) [][]byte // changes answers; nil leaves them as they are
	stall   chan struct{}
	arrived chan struct{}
}

func (w *wire) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := w.UDPConn.ReadFrom(b)
		w.mu.Lock()
		stall, arrived := w.stall, w.arrived
		w.mu.Unlock()
		if err == nil && stall != nil {
			select {
			case arrived <- struct{}{}:
			default:
			}
			continue // a BMC that hangs loses what it receives
		}
		return n, from, err
	}
}

func (w *wire) WriteTo(b []byte, to net.Addr) (int, error) {
	w.mu.Lock()
	change := w.out
	var all [][]byte
	if change != nil {
		all = change(append([]byte(nil), b...))
	} else {
		all = [][]byte{b}
	}
	w.mu.Unlock()
	for _, one := range all {
		if _, err := w.UDPConn.WriteTo(one, to); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// spoil changes the answers from now on.
func (w *wire) spoil(change func([]byte) [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = change
}

// hang makes the BMC hang until resume.
func (w *wire) hang() (arrived <-chan struct{}, resume func()) {
	stall, first := make(chan struct{}), make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stall, w.arrived = stall, first
	return first, sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stall = nil
	})
}
