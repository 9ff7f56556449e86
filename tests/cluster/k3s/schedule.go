package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// schedule is a specification of cron with five fields.
type schedule [5]map[int]bool

var scheduleLimits = [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}

func parseSchedule(text string) (*schedule, error) {
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return nil, fmt.Errorf("expected exactly 5 fields, found %d: %s", len(fields), fields)
	}
	parsed := &schedule{}
	for number, one := range fields {
		parsed[number] = map[int]bool{}
		for _, part := range strings.Split(one, ",") {
			if err := parsed.add(number, part); err != nil {
				return nil, err
			}
		}
	}
	return parsed, nil
}

func (s *schedule) add(number int, part string) error {
	span, stepText, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return fmt.Errorf("step of range should be a positive number: %s", part)
		}
	}
	first, last := scheduleLimits[number][0], scheduleLimits[number][1]
	if span != "*" {
		from, to, ranged := strings.Cut(span, "-")
		var err error
		if first, err = strconv.Atoi(from); err != nil {
			return fmt.Errorf("failed to parse int from %s: %w", from, err)
		}
		if !stepped {
			last = first
		}
		if ranged {
			if last, err = strconv.Atoi(to); err != nil {
				return fmt.Errorf("failed to parse int from %s: %w", to, err)
			}
		}
	}
	if first < scheduleLimits[number][0] || last > scheduleLimits[number][1] {
		return fmt.Errorf("beginning or end of range (%d-%d) is outside of the limits: %s", first, last, part)
	}
	for value := first; value <= last; value += step {
		s[number][value] = true
	}
	return nil
}

// due says whether a minute is one of the schedule.
func (s *schedule) due(now time.Time) bool {
	for number, value := range []int{now.Minute(), now.Hour(), now.Day(), int(now.Month()), int(now.Weekday())} {
		if !s[number][value] {
			return false
		}
	}
	return true
}

// takeScheduled takes snapshots at the minutes of the schedule, and keeps as many as are set.
func (c *cluster) takeScheduled(ctx context.Context) {
	if c.on("etcd-disable-snapshots") {
		info("ETCD snapshots are disabled")
		return
	}
	parsed, err := parseSchedule(c.text("etcd-snapshot-schedule-cron"))
	if err != nil {
		problem("Failed to schedule etcd snapshots: %v", err)
		return
	}
	for {
		next := time.Now().Truncate(time.Minute).Add(time.Minute)
		pause(ctx, time.Until(next))
		if ctx.Err() != nil {
			return
		}
		if !parsed.due(next) {
			continue
		}
		if err := c.scheduled(ctx); err != nil {
			problem("Failed to take scheduled snapshot: %v", err)
		}
	}
}

func (c *cluster) scheduled(ctx context.Context) error {
	folder, err := c.snapshotFolder("")
	if err != nil {
		return err
	}
	name, err := c.takeSnapshot(ctx, folder, c.text("etcd-snapshot-name"), c.on("etcd-snapshot-compress"))
	if err != nil {
		return err
	}
	c.upload(ctx, s3Settings(c.settings), name)
	retention, err := strconv.Atoi(c.text("etcd-snapshot-retention"))
	if err != nil {
		return err
	}
	_, err = prune(folder, c.text("etcd-snapshot-name"), retention)
	return err
}
