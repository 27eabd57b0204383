// What script adds to the auditor's pages: the print button.
(function () {
  'use strict';
  document.addEventListener('click', function (e) {
    if (e.target.closest && e.target.closest('[data-print]')) window.print();
  });
})();
