package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The write-ahead log takes a batch of saves with one write, where a commit of bbolt
// takes many. When it has grown, it is flushed to bbolt and emptied. Its content is
// part of the store: Open reads it first.

const (
	logFile = "state.log"
	maxLog  = 4 << 20 // bytes; a larger log is flushed
	maxRow  = 1 << 30 // bytes of a batch; a larger length is no batch of this log
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeAheadLog is the open log.
type writeAheadLog struct {
	f      *os.File
	fsync  bool
	size   int64
	batch  uint64 // number of the last batch; the numbers continue after the log was emptied
	writes int    // since the log was opened
	buf    []byte
}

func openLog(dir string, fsync bool) (*writeAheadLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &writeAheadLog{f: f, fsync: fsync}, nil
}

// add appends a batch. When it fails, the log is as before.
func (j *writeAheadLog) add(at time.Time, puts []rawPut) error {
	b := append(j.buf[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	b = appendBatch(b, j.batch+1, at, puts)
	j.buf = b
	if cap(j.buf) > maxLog {
		j.buf = nil
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-8))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	_, err := j.f.WriteAt(b, j.size)
	if err == nil && j.fsync {
		err = j.f.Sync()
	}
	if err != nil {
		return errors.Join(err, j.f.Truncate(j.size))
	}
	j.size += int64(len(b))
	j.batch++
	j.writes++
	return nil
}

// empty removes all batches, which are in bbolt.
func (j *writeAheadLog) empty() error {
	if err := j.f.Truncate(0); err != nil {
		return err
	}
	j.size = 0
	return nil
}

// each calls f with every batch, oldest first. It stops at the end of the log, or at
// a batch that was cut when its process was killed.
func (j *writeAheadLog) each(f func(batch uint64, at time.Time, puts []rawPut) error) error {
	all, err := io.ReadAll(io.NewSectionReader(j.f, 0, 1<<62))
	if err != nil {
		return err
	}
	for len(all) >= 8 {
		n, sum := binary.LittleEndian.Uint32(all), binary.LittleEndian.Uint32(all[4:])
		if n > maxRow || uint64(len(all)-8) < uint64(n) {
			break
		}
		row := all[8 : 8+n]
		if crc32.Checksum(row, castagnoli) != sum {
			break
		}
		batch, at, puts, err := parseBatch(row)
		if err != nil {
			return err
		}
		if err := f(batch, at, puts); err != nil {
			return err
		}
		all = all[8+n:]
	}
	return nil
}

// lastTime returns the highest time in the log of a directory, or zero when there is
// none.
func lastTime(dir string) (last time.Time, err error) {
	f, err := os.Open(filepath.Join(dir, logFile))
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	defer f.Close()
	err = (&writeAheadLog{f: f}).each(func(_ uint64, at time.Time, _ []rawPut) error {
		if at.After(last) {
			last = at
		}
		return nil
	})
	return last, err
}

// appendBatch encodes a batch: its number and time, then kind, key and value of each
// put, each text after its length. A plus before the kind means that the value is
// appended to the stored one.
func appendBatch(b []byte, number uint64, at time.Time, puts []rawPut) []byte {
	when, err := at.MarshalBinary()
	if err != nil {
		panic(err) // fails for zones of fractional minutes only; the lab's time is UTC
	}
	b = appendText(binary.AppendUvarint(b, number), when)
	for _, p := range puts {
		n := len(p.kind)
		if p.more {
			b = append(binary.AppendUvarint(b, uint64(n+1)), plus)
		} else {
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = appendText(appendText(append(b, p.kind...), p.key), p.value)
	}
	return b
}

// plus marks the kind of a value that is appended.
const plus = '+'

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// errBatch is returned for a batch with a correct checksum that cannot be parsed:
// another version of this program wrote it.
var errBatch = errors.New("a batch of the log is of a form that this build does not know: " +
	"start and stop the lab with the build that was killed with it, then there is no log")

func parseBatch(b []byte) (number uint64, at time.Time, puts []rawPut, err error) {
	number, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, at, nil, errBatch
	}
	b = b[size:]
	text := func() []byte {
		n, size := binary.Uvarint(b)
		if size <= 0 || uint64(len(b)-size) < n {
			err = errBatch
			return nil
		}
		p := b[size : size+int(n)]
		b = b[size+int(n):]
		return p
	}
	when := text()
	if err == nil {
		err = at.UnmarshalBinary(when)
	}
	for err == nil && len(b) > 0 {
		kind, more := strings.CutPrefix(string(text()), string(plus))
		puts = append(puts, rawPut{kind: Kind(kind), key: string(text()), value: text(), more: more})
	}
	if err != nil {
		return 0, at, nil, fmt.Errorf("%w: %w", errBatch, err)
	}
	return number, at, puts, nil
}
