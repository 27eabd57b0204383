// What script adds to the auditor's pages: printing, times in the reader's own zone where
// the server did not know it yet, and how far a verification is.
(function () {
  'use strict';
  document.addEventListener('click', function (e) {
    if (e.target.closest && e.target.closest('[data-print]')) window.print();
  });

  // The server draws times in the zone that the cookie names; at the very first visit there
  // is none. The header keeps saying whose times these are.
  var zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  var head = document.querySelector('.zone');
  if (head && zone && head.dataset.zone !== zone) {
    document.querySelectorAll('time[data-minute]').forEach(function (t) {
      var d = new Date(t.dateTime);
      function two(n) { return String(n).padStart(2, '0'); }
      t.textContent = d.getFullYear() + '-' + two(d.getMonth() + 1) + '-' + two(d.getDate()) + ' ' + two(d.getHours()) + ':' + two(d.getMinutes());
    });
    head.textContent = '(' + zone + ')';
  }

  // A verification tells how far it is, a line of JSON each time; its last line is the
  // result, which the page then shows as the server draws it. Without these means the form
  // is posted, and the answer is the result.
  var run = document.querySelector('[data-verify-run]');
  function verify(form) {
    var start = form.querySelector('[type=submit]'), stop = form.querySelector('[data-verify-stop]');
    var bar = run.querySelector('progress'), say = run.querySelector('[data-verify-say]'), aloud = document.querySelector('[data-verify-status]');
    var gone = new AbortController(), spoken = 0;

    function ended(text) {
      start.disabled = false;
      stop.hidden = true;
      bar.hidden = true;
      say.textContent = aloud.textContent = text;
      start.focus();
    }
    function number(n) { return Number(n).toLocaleString('en'); }
    function told(p) {
      if ('ok' in p) {
        aloud.textContent = p.ok ? 'Everything fits.' : 'Something does not fit.';
        location.replace(form.action);
        return;
      }
      var part = p.of_events ? Math.min(100, Math.floor(100 * p.events / p.of_events)) : 100;
      bar.value = part;
      say.textContent = p.seals ? 'Events done · ' + number(p.seals) + ' seals checked'
        : part + '% · ' + number(p.events) + ' of about ' + number(p.of_events) + ' events · ' + number(p.tasks) + ' of ' + number(p.of) + ' tasks';
      if (Date.now() - spoken > 5000) {
        spoken = Date.now();
        aloud.textContent = part + '% verified';
      }
    }
    function read(reader) {
      var text = new TextDecoder(), rest = '', done = false;
      return reader.read().then(function next(chunk) {
        rest += text.decode(chunk.value || new Uint8Array(), { stream: !chunk.done });
        var lines = rest.split('\n');
        rest = lines.pop();
        lines.forEach(function (line) {
          var p = JSON.parse(line);
          done = done || 'ok' in p;
          told(p);
        });
        if (!chunk.done) return reader.read().then(next);
        if (!done) throw new Error('cut off');
      });
    }

    start.disabled = true;
    stop.hidden = run.hidden = bar.hidden = false;
    bar.removeAttribute('value');
    say.textContent = aloud.textContent = 'Reading every event…';
    stop.focus();
    stop.onclick = function () { gone.abort(); };
    fetch(run.dataset.verifyRun, { headers: { Accept: 'application/jsonl' }, credentials: 'same-origin', cache: 'no-store', signal: gone.signal }).then(function (r) {
      if (r.ok) return read(r.body.getReader());
      return r.json().then(function (problem) { ended(problem.detail); });
    }).catch(function () {
      ended(gone.signal.aborted ? 'Stopped. Nothing was recorded.' : 'The connection to the server was lost before the end, so nothing was recorded. Verify again.');
    });
  }
  document.addEventListener('submit', function (e) {
    var form = e.target.closest('form[data-verify]');
    if (!form || !run || !window.fetch || !window.AbortController || !window.TextDecoder || !window.ReadableStream) return;
    e.preventDefault();
    verify(form);
  });
})();
