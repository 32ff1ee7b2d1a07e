package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// etcdAhead is the number of bytes that are allocated beyond the end of etcd's database.
// etcd ends the process when it cannot write, and it also writes without a request that
// could be refused, as for a compaction: these writes use the allocated space.
const etcdAhead = 8 << 20

// roomPeriod is how often the room is looked after.
const roomPeriod = 500 * time.Millisecond

// etcdRoom allocates blocks of the disk for the next writes of etcd's database.
type etcdRoom struct {
	space   func() error // Config.Space; nil for none
	lacking atomic.Pointer[error]
	end     chan struct{}
	ended   sync.WaitGroup
}

// newEtcdRoom looks after the database of the etcd in a directory until stop.
func newEtcdRoom(data string, space func() error) *etcdRoom {
	r := &etcdRoom{space: space, end: make(chan struct{})}
	db := filepath.Join(data, "member", "snap", "db")
	r.look(db)
	r.ended.Go(func() {
		tick := time.NewTicker(roomPeriod)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.look(db)
			case <-r.end:
				return
			}
		}
	})
	return r
}

func (r *etcdRoom) look(db string) {
	if err := allocateAhead(db, etcdAhead); err != nil {
		err = fmt.Errorf("no space left for etcd: %w: make room, and the API goes on by itself", err)
		r.lacking.Store(&err)
		return
	}
	r.lacking.Store(nil)
}

// err returns why the API must not write now, or nil.
func (r *etcdRoom) err() error {
	if err := r.lacking.Load(); err != nil {
		return *err
	}
	if r.space == nil {
		return nil
	}
	return r.space()
}

func (r *etcdRoom) stop() error {
	close(r.end)
	r.ended.Wait()
	return nil
}

// reviews are the ends of the paths of resources that are created and not stored.
var reviews = []string{"/tokenreviews", "/subjectaccessreviews", "/selfsubjectaccessreviews", "/selfsubjectrulesreviews", "/localsubjectaccessreviews", "/selfsubjectreviews"}

// refuseWithoutSpace returns a handler that answers 507 to requests that store something
// for as long as space returns an error.
func refuseWithoutSpace(space func() error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			next.ServeHTTP(w, r)
			return
		}
		err := space()
		if err == nil || !stores(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInsufficientStorage)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage", Message: err.Error(),
		})
	})
}

// stores reports whether a request that is not a GET stores something.
func stores(r *http.Request) bool {
	for _, end := range reviews {
		if strings.HasSuffix(r.URL.Path, end) {
			return false
		}
	}
	return !r.URL.Query().Has("dryRun")
}
