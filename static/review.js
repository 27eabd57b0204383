// What script adds to the review page's own forms, which also work without it: comments
// open and are kept in place, ticked files are counted, typed texts survive a reload.
(function () {
  'use strict';
  var page = document.querySelector('.review');
  if (!page) return;
  var digest = page.dataset.digest.slice(0, 16);
  function all(sel, from) { return Array.from((from || document).querySelectorAll(sel)); }
  function byId(id) { return document.getElementById(id); }
  function on(type, sel, act) {
    document.addEventListener(type, function (e) {
      var el = e.target.closest && e.target.closest(sel);
      if (el) act(el, e);
    });
  }
  // What is typed and not sent stays with the browser, under the revision that it is about.
  function kept(name, value) {
    var key = 'gatehouse.typed.' + digest + '.' + name;
    try {
      if (value === undefined) return localStorage.getItem(key) || '';
      if (value) localStorage.setItem(key, value);
      else localStorage.removeItem(key);
    } catch (e) { /* storage may be switched off */ }
    return '';
  }
  function announce(text) { byId('announce').textContent = text; }

  // ---- comments on lines
  function lineOf(anchor) {
    var m = /^F(\d+)([LR])(\d+)$/.exec(anchor);
    return m && { anchor: anchor, head: 'F' + m[1] + m[2], file: byId('F' + m[1]), side: m[2], line: Number(m[3]) };
  }
  function rowOf(anchor) {
    var el = byId(anchor);
    return el && el.closest('tr');
  }
  // The row under a line that holds its comments; made where there is none yet.
  function notesOf(anchor) {
    var have = byId(anchor + '-n');
    if (have) return have;
    var line = rowOf(anchor), row = document.createElement('tr'), cell = document.createElement('td');
    row.className = 'remark-row';
    row.id = anchor + '-n';
    cell.colSpan = line.closest('.diff-split') ? 4 : 3;
    row.appendChild(cell);
    var after = line;
    while (after.nextElementSibling && after.nextElementSibling.classList.contains('remark-row')) after = after.nextElementSibling;
    after.after(row);
    return row;
  }
  function open() { return byId('remark-form'); }
  function close(back) {
    var form = open();
    if (!form) return;
    var anchor = form.elements.at.value, row = form.closest('tr');
    form.remove();
    if (row) {
      all('.remark', row).forEach(function (r) { r.hidden = false; });
      if (!row.querySelector('.remark')) row.remove();
    }
    document.body.classList.remove('commenting');
    var link = back && document.querySelector('[data-comment="' + anchor + '"]');
    if (link) link.focus({ preventScroll: true });
  }
  function name(anchor) {
    var row = rowOf(anchor), head = row && (byId(anchor).matches('th') ? byId(anchor) : row.querySelector('th'));
    return head ? head.getAttribute('aria-label') : 'this line';
  }
  // from is the first line of a run that ends with the anchor's.
  function comment(anchor, from) {
    var at = lineOf(anchor), template = byId('remark-template');
    if (!at || !at.file || !template || !rowOf(anchor)) return false;
    if (open() && open().elements.at.value === anchor) {
      if (from) setFrom(open(), at, from);
      open().elements.text.focus();
      return true;
    }
    close(false);
    var row = notesOf(anchor), form = template.content.firstElementChild.cloneNode(true), draft = row.querySelector('.remark.is-draft');
    form.id = 'remark-form';
    form.elements.text.id = form.querySelector('label').htmlFor = 'remark-text';
    form.elements.path.value = at.file.dataset.path;
    form.elements.side.value = at.side;
    form.elements.line.value = at.line;
    form.elements.at.value = anchor;
    form.querySelector('label').textContent = 'Comment on ' + name(anchor);
    form.elements.from.id = form.querySelector('.remark-from label').htmlFor = 'remark-from';
    setFrom(form, at, from || (draft && Number(draft.dataset.first)) || at.line);
    form.elements.text.value = kept('c.' + anchor) || (draft ? draft.querySelector('.remark-text').textContent.trim() : '');
    if (draft) draft.hidden = true;
    row.firstElementChild.appendChild(form);
    document.body.classList.add('commenting');
    form.elements.text.focus({ preventScroll: true });
    form.scrollIntoView({ block: 'nearest' });
    return true;
  }
  // The address names what the comment is about: #F3R42, or #F3R42-R48.
  function setFrom(form, at, from) {
    from = Math.max(1, Math.min(from, at.line));
    form.elements.from.value = from;
    form.elements.from.max = at.line;
    form.querySelector('.remark-from').hidden = at.line < 2;
    form.querySelector('.remark-from span').textContent = 'to ' + at.line;
    history.replaceState(history.state, '', '#' + (from < at.line ? at.head + from + '-' + at.side + at.line : at.anchor));
    document.dispatchEvent(new CustomEvent('gh-range'));
  }
  on('input', '#remark-form [name="from"]', function (input) {
    var at = lineOf(input.form.elements.at.value);
    if (at && input.value) setFrom(input.form, at, Number(input.value) || at.line);
  });
  // Shift and a click go from the line that is marked to this one.
  function run(a) {
    var to = /^#?(F\d+[LR])(\d+)$/.exec(a.dataset.comment || a.hash), from = /^#(F\d+[LR])(\d+)/.exec(location.hash);
    if (!to || !from || to[1] !== from[1]) return null;
    var lines = [Number(from[2]), Number(to[2])].sort(function (x, y) { return x - y; });
    return { head: to[1], first: lines[0], last: lines[1] };
  }
  on('click', '.diff .no a', function (a, e) {
    if (e.ctrlKey || e.metaKey || e.button) return;
    var to = e.shiftKey && run(a), anchor = a.dataset.comment;
    if (to && to.first < to.last) {
      e.preventDefault();
      getSelection().removeAllRanges(); // shift selects text, too
      if (!anchor || !comment(to.head + to.last, to.first)) {
        history.replaceState(history.state, '', '#' + to.head + to.first + '-' + to.head.slice(-1) + to.last);
        document.dispatchEvent(new CustomEvent('gh-range'));
      }
    } else if (anchor && comment(anchor)) {
      e.preventDefault();
    }
  });
  on('click', '[data-comment-close]', function (a, e) {
    e.preventDefault();
    kept('c.' + a.closest('form').elements.at.value, '');
    close(true);
  });
  on('input', '#remark-form textarea', function (t) { kept('c.' + t.form.elements.at.value, t.value); });
  // `c` comments on the line that is marked, pointed at, or the next that changed.
  var pointed = null;
  document.addEventListener('pointerover', function (e) { var r = e.target.closest && e.target.closest('.diff tr'); if (r) pointed = r; });
  document.addEventListener('gh-comment', function () {
    var hash = location.hash.slice(1), cursor = document.querySelector('.hunk-head.cursor'), link = null;
    if (cursor && cursor.nextElementSibling) link = cursor.nextElementSibling.querySelector('.add [data-comment], .del [data-comment]') || cursor.nextElementSibling.querySelector('[data-comment]');
    if (!link && pointed && pointed.isConnected) link = pointed.querySelector('[data-comment]');
    if (!link && lineOf(hash)) link = document.querySelector('[data-comment="' + hash + '"]');
    if (!link) link = document.querySelector('.diff .add [data-comment], .diff .del [data-comment], .diff [data-comment]');
    var many = /^#(F\d+)([LR])(\d+)-[LR](\d+)$/.exec(location.hash);
    if (many && document.querySelector('[data-comment="' + many[1] + many[2] + many[4] + '"]') && !cursor) comment(many[1] + many[2] + many[4], Number(many[3]));
    else if (link) comment(link.dataset.comment);
  });
  // A file that is drawn again has no form in it: what was typed is kept, and put back.
  var reopen = null;
  document.addEventListener('gh-redraw', function (e) {
    reopen = open() && e.detail.contains(open()) ? { anchor: open().elements.at.value, from: Number(open().elements.from.value) } : null;
  });
  document.addEventListener('gh-redrawn', function () {
    if (reopen) comment(reopen.anchor, reopen.from);
    reopen = null;
  });
  document.addEventListener('keydown', function (e) {
    if (e.key === 'Escape' && open()) close(true);
  });

  // A draft is sent behind the page; what the answer shows of it is put in place.
  function renew(answer, anchor) {
    var fresh = answer.getElementById(anchor + '-n'), row = byId(anchor + '-n');
    var typing = row && open() && row.contains(open()) && Number(open().elements.from.value);
    if (row && !fresh) row.remove();
    else if (fresh) notesOf(anchor).replaceWith(document.importNode(fresh, true));
    if (typing) comment(anchor, typing);
    ['drafts-gone', 'threads-elsewhere', 'open-comments'].forEach(function (id) {
      var was = byId(id), now = answer.getElementById(id);
      if (was && now) was.replaceWith(document.importNode(now, true));
    });
    var list = document.querySelector('#file-list > ul'), listed = answer.querySelector('#file-list > ul');
    if (!document.querySelector('[data-pick]')) list.replaceWith(document.importNode(listed, true));
    all('.loose').forEach(function (l) { l.remove(); });
    all('.loose', answer).forEach(function (l) {
      var file = byId(l.closest('.file').id);
      if (file) file.querySelector('.file-head').after(document.importNode(l, true));
    });
    var verdict = byId('verdict'), now = answer.getElementById('verdict');
    if (verdict && now) {
      verdict.dataset.drafts = now.dataset.drafts;
      verdict.querySelector('.changes').replaceWith(document.importNode(now.querySelector('.changes'), true));
    }
    document.dispatchEvent(new CustomEvent('gh-morphed', { detail: { part: page } }));
    document.dispatchEvent(new CustomEvent('gh-files'));
  }
  function failed(form, text) {
    delete form.dataset.sent;
    var p = form.querySelector('[data-error]');
    if (!p) { p = document.createElement('p'); p.className = 'form-error'; p.setAttribute('data-error', ''); form.appendChild(p); }
    p.hidden = false;
    p.textContent = text;
  }
  on('submit', '[data-draft-form]', function (form, e) {
    if (!window.fetch || !window.URLSearchParams) return;
    e.preventDefault();
    var button = e.submitter, anchor = form.elements.at.value, body = new URLSearchParams(new FormData(form));
    body.set('do', button ? button.value : 'save');
    // The answer is about the revision that is being read, also when it is no longer the newest.
    body.set('back', form.elements.back.value.replace(/(^|&)rev=\d+/, '') + '&rev=' + form.elements.revision.value);
    fetch(form.getAttribute('action'), { method: 'POST', body: body, headers: { Accept: 'text/html' }, credentials: 'same-origin' }).then(function (r) {
      return r.text().then(function (text) {
        var answer = new DOMParser().parseFromString(text, 'text/html');
        if (new URL(r.url).pathname === '/login') { failed(form, 'You are signed out, so this was not saved. Sign in in another tab, then save again.'); return; }
        if (!r.ok) {
          var why = answer.querySelector('#review-bar .form-error, main p');
          failed(form, why ? why.textContent : 'That was not saved. Your text is kept here.');
          return;
        }
        var thread = form.dataset.thread;
        kept(thread ? 't.' + thread : 'c.' + anchor, '');
        if (form === open()) close(true);
        renew(answer, anchor);
        if (thread && byId('t-' + thread)) (byId('t-' + thread).querySelector('summary') || byId('t-' + thread)).focus({ preventScroll: true });
        announce({ delete: 'Comment deleted', reply: 'Reply sent', resolve: 'Comment resolved', reopen: 'Comment is open again' }[body.get('do')] || 'Comment saved, not sent');
      });
    }).catch(function () { failed(form, 'No answer from the server. Your text is kept here; save it again.'); });
  });

  // A reply that is typed and not sent is put back after a reload, and ready to type in when it is opened.
  on('input', '.reply textarea', function (t) { kept('t.' + t.form.dataset.thread, t.value); });
  document.addEventListener('toggle', function (e) {
    if (!e.target.matches || !e.target.matches('.reply[open]')) return;
    var t = e.target.querySelector('textarea');
    if (!t.value) t.value = kept('t.' + t.form.dataset.thread);
    t.focus({ preventScroll: true });
  }, true);

  // ---- choosing files
  function countPicks() {
    var boxes = all('[data-pick]'), n = boxes.filter(function (b) { return b.checked; }).length, button = document.querySelector('#verdict.is-picking .approve');
    if (!button || !boxes.length) return;
    var words = 'Approve ' + n + ' of ' + boxes.length + ' files';
    if (button.textContent !== words) button.textContent = words;
    button.disabled = n === 0;
  }
  on('change', '[data-pick]', countPicks);
  document.addEventListener('gh-morphed', countPicks);
  countPicks();

  // ---- editing: what was typed is put back after a reload, and until it is sent
  all('[data-edit]').forEach(function (t) {
    var was = kept('e.' + t.name);
    t.dataset.was = t.value;
    if (was && was !== t.value) t.value = was;
    t.addEventListener('input', function () { kept('e.' + t.name, t.value === t.dataset.was ? '' : t.value); });
    t.addEventListener('keydown', function (e) {
      if (e.key !== 'Tab' || e.shiftKey || e.ctrlKey || e.altKey || e.metaKey) return;
      e.preventDefault();
      t.setRangeText('\t', t.selectionStart, t.selectionEnd, 'end');
      t.dispatchEvent(new Event('input', { bubbles: true }));
    });
  });
  function forget() {
    try {
      Object.keys(localStorage).forEach(function (k) { if (k.indexOf('gatehouse.typed.' + digest) === 0) localStorage.removeItem(k); });
    } catch (e) { /* storage may be switched off */ }
  }
  on('click', '#edit a.button', forget);
  if (!document.querySelector('#verdict, #edit, .thread-form')) forget();

  // A form that the server opened is ready to type in.
  if (open()) {
    document.body.classList.add('commenting');
    open().elements.text.focus({ preventScroll: true });
    open().scrollIntoView({ block: 'nearest' });
  }
})();
