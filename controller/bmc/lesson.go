package bmc

import (
	"slices"
	"strings"
	"sync"
)

// Lesson is what a driver has found out about one BMC: which of several ways to
// do a thing it takes. It holds no secret.
type Lesson struct {
	Topic string // "boot override"
	Way   string // "target, enabled and mode together"
	Odd   bool   // it is not what the standard, or the driver, would begin with
}

func (l Lesson) String() string { return l.Topic + ": " + l.Way }

// Lessons are those about one BMC. Who opens another Client for it hands them
// on, and nothing is tried twice. The zero value is ready, and a nil one learns
// nothing.
type Lessons struct {
	mu  sync.Mutex
	all []Lesson // by topic
}

// Learn keeps a lesson in the place of that on the same topic.
func (l *Lessons) Learn(lesson Lesson) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known := slices.BinarySearchFunc(l.all, lesson.Topic, func(l Lesson, topic string) int { return strings.Compare(l.Topic, topic) })
	if known {
		l.all[i] = lesson
		return
	}
	l.all = slices.Insert(l.all, i, lesson)
}

// Way is what was learned on a topic; "" is nothing.
func (l *Lessons) Way(topic string) string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.Topic == topic {
			return one.Way
		}
	}
	return ""
}

// Odd are the lessons that set the BMC apart from others, by topic.
func (l *Lessons) Odd() []Lesson {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var odd []Lesson
	for _, one := range l.all {
		if one.Odd {
			odd = append(odd, one)
		}
	}
	return odd
}

// Learner is a Client that tells what was learned about its BMC. Every Client
// of a Pool is one.
type Learner interface {
	// Lessons are those that set the BMC apart from others.
	Lessons() []Lesson
}

var _ Learner = (*pooled)(nil)

// Lessons implements Learner.
func (c *pooled) Lessons() []Lesson { return c.entry.lessons.Odd() }
